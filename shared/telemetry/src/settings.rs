//! Where telemetry goes, read from the standard `OTEL_*` variables.
//!
//! Only what decides whether and how we export is read here; headers, compression, sampling and
//! batch sizes are read by the OpenTelemetry SDK itself, under their standard names.

use std::time::Duration;

use thiserror::Error;

/// How long finished spans wait for company. Short, so that the children of a run arrive before
/// the run ends; the SDK's own default is 5 s.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// How long one export may take before it counts as failed; the SDK's own default is 10 s.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(3);

/// Where telemetry goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The OTLP/gRPC endpoint for spans; none: no spans.
    pub traces_endpoint: Option<String>,
    /// The OTLP/gRPC endpoint for metrics; none: no metrics.
    pub metrics_endpoint: Option<String>,
    /// How long finished spans wait for company; none: the SDK reads `OTEL_BSP_SCHEDULE_DELAY`.
    pub batch_delay: Option<Duration>,
    /// How long one export may take; none: the exporter reads `OTEL_EXPORTER_OTLP_*TIMEOUT`.
    pub export_timeout: Option<Duration>,
}

/// Why the environment cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// Only OTLP over gRPC is spoken; sending it to an HTTP port would be silence.
    #[error("export telemetry by {value:?} ({variable}): only grpc is spoken")]
    Protocol {
        /// The variable that asks for it.
        variable: &'static str,
        /// What it asks for.
        value: String,
    },
}

impl Settings {
    /// Telemetry that goes nowhere.
    pub fn off() -> Self {
        Self {
            traces_endpoint: None,
            metrics_endpoint: None,
            batch_delay: Some(BATCH_DELAY),
            export_timeout: Some(EXPORT_TIMEOUT),
        }
    }

    /// Spans and metrics to one endpoint.
    pub fn to(endpoint: impl Into<String>) -> Self {
        let endpoint = Some(endpoint.into());
        Self { traces_endpoint: endpoint.clone(), metrics_endpoint: endpoint, ..Self::off() }
    }

    /// Reads the process's environment.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// Reads variables from `lookup`.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        // An empty variable counts as unset, by the OpenTelemetry specification.
        let lookup = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
        let unset = |name: &str| lookup(name).is_none();
        if lookup("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(Self::off());
        }
        let endpoint = |signal: &Signal| {
            let muted = lookup(signal.exporter).is_some_and(|value| value == "none");
            let endpoint =
                lookup(signal.endpoint).or_else(|| lookup("OTEL_EXPORTER_OTLP_ENDPOINT"));
            endpoint.filter(|_| !muted)
        };
        let settings = Self {
            traces_endpoint: endpoint(&TRACES),
            metrics_endpoint: endpoint(&METRICS),
            batch_delay: unset("OTEL_BSP_SCHEDULE_DELAY").then_some(BATCH_DELAY),
            export_timeout: TIMEOUTS.into_iter().all(unset).then_some(EXPORT_TIMEOUT),
        };
        let used = [(&settings.traces_endpoint, TRACES), (&settings.metrics_endpoint, METRICS)];
        for (_, signal) in used.into_iter().filter(|(endpoint, _)| endpoint.is_some()) {
            speaks_grpc(&signal, lookup)?;
        }
        Ok(settings)
    }
}

struct Signal {
    endpoint: &'static str,
    exporter: &'static str,
    protocol: &'static str,
}

const TRACES: Signal = Signal {
    endpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    exporter: "OTEL_TRACES_EXPORTER",
    protocol: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
};
const METRICS: Signal = Signal {
    endpoint: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    exporter: "OTEL_METRICS_EXPORTER",
    protocol: "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
};
const TIMEOUTS: [&str; 3] = [
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT",
];

fn speaks_grpc(
    signal: &Signal,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<(), SettingsError> {
    let asked = [signal.protocol, "OTEL_EXPORTER_OTLP_PROTOCOL"];
    let asked = asked.into_iter().find_map(|name| lookup(name).map(|value| (name, value)));
    match asked {
        Some((variable, value)) if value != "grpc" => {
            Err(SettingsError::Protocol { variable, value })
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name);
        Settings::read(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317");

    #[test]
    fn telemetry_is_off_unless_an_endpoint_is_set() {
        assert_eq!(read(&[]), Ok(Settings::off()));
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), Ok(Settings::off()));
        assert_eq!(read(&[ENDPOINT, ("OTEL_SDK_DISABLED", "True")]), Ok(Settings::off()));
        assert_eq!(read(&[ENDPOINT]), Ok(Settings::to("http://c:4317")));
    }

    #[test]
    fn each_signal_follows_its_own_variables_first() {
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1");
        assert_eq!(
            read(&[ENDPOINT, own, ("OTEL_METRICS_EXPORTER", "none")]),
            Ok(Settings { traces_endpoint: Some("http://t:1".into()), ..Settings::off() })
        );
        assert_eq!(
            read(&[own]),
            Ok(Settings { traces_endpoint: Some("http://t:1".into()), ..Settings::off() })
        );
    }

    #[test]
    fn our_delays_give_way_to_the_standard_variables() {
        let set = read(&[
            ENDPOINT,
            ("OTEL_BSP_SCHEDULE_DELAY", "250"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "900"),
        ]);
        let expected =
            Settings { batch_delay: None, export_timeout: None, ..Settings::to("http://c:4317") };
        assert_eq!(set, Ok(expected));
    }

    #[test]
    fn a_protocol_we_do_not_speak_is_refused_not_ignored() {
        let http = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
        let refused = SettingsError::Protocol {
            variable: "OTEL_EXPORTER_OTLP_PROTOCOL",
            value: "http/protobuf".into(),
        };
        assert_eq!(read(&[ENDPOINT, http]), Err(refused));
        assert_eq!(read(&[http]), Ok(Settings::off()));
        let grpc = [
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"),
        ];
        assert_eq!(read(&[ENDPOINT, http, grpc[0], grpc[1]]), Ok(Settings::to("http://c:4317")));
    }
}
