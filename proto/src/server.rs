//! Every server of the API with its message limits set.
//!
//! `server::plans(mine)` around a type that implements `v1::plan_service_server::PlanService`.
//! Listening, authentication and the services themselves are the coordinator's.

use crate::limits::{CHUNK_MESSAGE_BYTES, LINK_MESSAGE_BYTES, MESSAGE_BYTES};
use crate::v1;

macro_rules! servers {
    ($($name:ident, $module:ident, $service:ident, $server:ident, $bytes:expr;)+) => {$(
        #[doc = concat!("Serves `", stringify!($service), "`.")]
        pub fn $name<S: v1::$module::$service>(service: S) -> v1::$module::$server<S> {
            v1::$module::$server::new(service)
                .max_decoding_message_size($bytes)
                .max_encoding_message_size($bytes)
        }
    )+};
}

servers! {
    plans, plan_service_server, PlanService, PlanServiceServer, MESSAGE_BYTES;
    runs, run_service_server, RunService, RunServiceServer, MESSAGE_BYTES;
    units, unit_service_server, UnitService, UnitServiceServer, MESSAGE_BYTES;
    questions, question_service_server, QuestionService, QuestionServiceServer, MESSAGE_BYTES;
    messages, message_service_server, MessageService, MessageServiceServer, MESSAGE_BYTES;
    fleet, fleet_service_server, FleetService, FleetServiceServer, MESSAGE_BYTES;
    reviews, review_service_server, ReviewService, ReviewServiceServer, MESSAGE_BYTES;
    deliveries, delivery_service_server, DeliveryService, DeliveryServiceServer, MESSAGE_BYTES;
    artifacts, artifact_service_server, ArtifactService, ArtifactServiceServer, CHUNK_MESSAGE_BYTES;
    sources, source_service_server, SourceService, SourceServiceServer, MESSAGE_BYTES;
    journal, journal_service_server, JournalService, JournalServiceServer, MESSAGE_BYTES;
    tokens, token_service_server, TokenService, TokenServiceServer, MESSAGE_BYTES;
    link, link_service_server, LinkService, LinkServiceServer, LINK_MESSAGE_BYTES;
}
