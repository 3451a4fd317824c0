//! Every client of the API over one channel, with the token and the message limits set.
//!
//! How to reach a coordinator (addresses, TLS, keep-alive, re-dialling) is the caller's.

use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use crate::auth::Bearer;
use crate::limits::{CHUNK_MESSAGE_BYTES, LINK_MESSAGE_BYTES, MESSAGE_BYTES};
use crate::v1;

/// A channel that shows a token.
pub type Authorized = InterceptedService<Channel, Bearer>;

/// Clients of one coordinator; cheap to clone.
#[derive(Clone, Debug)]
pub struct Clients {
    channel: Channel,
    bearer: Bearer,
}

macro_rules! clients {
    ($($name:ident, $module:ident, $client:ident, $bytes:expr;)+) => {
        impl Clients {
            /// Clients over this channel, for the bearer of this token.
            pub fn new(channel: Channel, bearer: Bearer) -> Self {
                Self { channel, bearer }
            }

            $(
                #[doc = concat!("A `", stringify!($client), "`.")]
                pub fn $name(&self) -> v1::$module::$client<Authorized> {
                    v1::$module::$client::with_interceptor(
                        self.channel.clone(),
                        self.bearer.clone(),
                    )
                    .max_decoding_message_size($bytes)
                    .max_encoding_message_size($bytes)
                }
            )+
        }
    };
}

clients! {
    plans, plan_service_client, PlanServiceClient, MESSAGE_BYTES;
    runs, run_service_client, RunServiceClient, MESSAGE_BYTES;
    units, unit_service_client, UnitServiceClient, MESSAGE_BYTES;
    questions, question_service_client, QuestionServiceClient, MESSAGE_BYTES;
    messages, message_service_client, MessageServiceClient, MESSAGE_BYTES;
    fleet, fleet_service_client, FleetServiceClient, MESSAGE_BYTES;
    reviews, review_service_client, ReviewServiceClient, MESSAGE_BYTES;
    deliveries, delivery_service_client, DeliveryServiceClient, MESSAGE_BYTES;
    artifacts, artifact_service_client, ArtifactServiceClient, CHUNK_MESSAGE_BYTES;
    sources, source_service_client, SourceServiceClient, MESSAGE_BYTES;
    journal, journal_service_client, JournalServiceClient, MESSAGE_BYTES;
    tokens, token_service_client, TokenServiceClient, MESSAGE_BYTES;
    link, link_service_client, LinkServiceClient, LINK_MESSAGE_BYTES;
}
