// Declares the debug adapter `whydunit dap`, and one command of the variables view. Everything else is the adapter's.
const vscode = require("vscode");

class Factory {
  createDebugAdapterDescriptor() {
    return new vscode.DebugAdapterExecutable("whydunit", ["dap"]);
  }
}

async function origin(item) {
  const session = vscode.debug.activeDebugSession;
  const expression = item && item.variable && item.variable.evaluateName;
  if (!session || !expression) {
    return;
  }
  const frame = vscode.debug.activeStackItem;
  const frameId = frame && frame.frameId;
  const answer = await session.customRequest("evaluate", {
    expression: "origin " + expression, context: "repl", frameId,
  });
  vscode.window.showInformationMessage(answer.result);
}

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory("whydunit", new Factory()),
    vscode.commands.registerCommand("whydunit.origin", origin),
  );
};
