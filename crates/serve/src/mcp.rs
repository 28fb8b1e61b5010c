//! The Model Context Protocol: few tools with which an agent asks a recording why. Answers are text of bounded length.
//! Nothing is run or written unless the user allows it.
//!
//! [`tools`] describes them, and carries them out.

mod tools;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServiceExt};
use std::sync::{Arc, Mutex, PoisonError};

/// What an agent is told first.
const INSTRUCTIONS: &str = "Whydunit answers why a native Linux program did what it did, from a recording of one run. \
Begin with `explain` on a recording. Then look at `state` at the moments it names, follow a wrong value back with `origin`, \
and test a suspicion with `whatif`. A moment is PLACE#N (the N-th execution of FILE:LINE or FUNCTION), PLACE (its last), start, \
crash, end, or @TICK:0xPC as answers give it.";

/// The server.
#[derive(Clone)]
pub struct Server {
    allow_run: bool,
    /// Replays are made one at a time.
    turn: Arc<Mutex<()>>,
}

impl Server {
    /// One that may run programs, or only reads recordings.
    #[must_use]
    pub fn new(allow_run: bool) -> Self {
        Self { allow_run, turn: Arc::default() }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("whydunit", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all(self.allow_run)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (turn, allow_run) = (self.turn.clone(), self.allow_run);
        let answered = tokio::task::spawn_blocking(move || {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let given = request.arguments.unwrap_or_default();
            tools::call(&request.name, &serde_json::Value::Object(given), allow_run)
        });
        let result = match answered.await {
            Ok(Ok(text)) => CallToolResult::success(vec![ContentBlock::text(tools::bounded(text))]),
            Ok(Err(error)) => CallToolResult::error(vec![ContentBlock::text(tools::bounded(
                format!("{error:#}"),
            ))]),
            Err(_) => return Err(ErrorData::internal_error("a fault of our own", None)),
        };
        Ok(result.into())
    }
}

/// Serves one agent over standard input and output.
pub fn serve(allow_run: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let service = Server::new(allow_run).serve(rmcp::transport::stdio()).await;
        match service {
            Ok(service) => drop(service.waiting().await?),
            // An agent that leaves, or speaks no protocol, before it has begun.
            Err(error) => eprintln!("whydunit: {error}"),
        }
        Ok(())
    })
}
