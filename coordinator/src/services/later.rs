//! Services whose behaviour is not built: every call is refused by the name of what is missing.
//!
//! The token is still looked at first, so that nobody learns more than a bearer may.

use ganger_proto::v1;
use ganger_shared::actor::Role;
use tonic::{Request, Response, Status};

use super::ask::not_yet;
use super::principal;

/// Questions to people.
pub struct Questions;

/// Messages to agents at work.
pub struct Messages;

/// Reviews from outside the fleet.
pub struct Reviews;

#[tonic::async_trait]
impl v1::question_service_server::QuestionService for Questions {
    async fn list(
        &self,
        request: Request<v1::QuestionServiceListRequest>,
    ) -> Result<Response<v1::QuestionServiceListResponse>, Status> {
        principal(request.extensions(), Role::Read)?;
        Err(not_yet("listing questions"))
    }

    async fn answer(
        &self,
        request: Request<v1::QuestionServiceAnswerRequest>,
    ) -> Result<Response<v1::QuestionServiceAnswerResponse>, Status> {
        principal(request.extensions(), Role::Judge)?;
        Err(not_yet("answering questions"))
    }
}

#[tonic::async_trait]
impl v1::message_service_server::MessageService for Messages {
    async fn send(
        &self,
        request: Request<v1::MessageServiceSendRequest>,
    ) -> Result<Response<v1::MessageServiceSendResponse>, Status> {
        principal(request.extensions(), Role::Operate)?;
        Err(not_yet("sending messages to agents"))
    }
}

#[tonic::async_trait]
impl v1::review_service_server::ReviewService for Reviews {
    async fn submit(
        &self,
        request: Request<v1::ReviewServiceSubmitRequest>,
    ) -> Result<Response<v1::ReviewServiceSubmitResponse>, Status> {
        principal(request.extensions(), Role::Judge)?;
        Err(not_yet("handing in reviews"))
    }
}
