import { resolve } from "node:path";
import { type Call, type Command, exitCodes, usageError } from "../command.ts";

export const controller: Command = {
  name: "controller",
  summary: "run the controllers against a Kubernetes cluster",
  description:
    "Runs Berth's controllers, in the foreground, against the Kubernetes API that the kubeconfig " +
    "names. Its CRDs come from berth crds. Several may run: one leads, the others wait.",
  usage: "controller --kubeconfig FILE [--context NAME]",
  options: {
    kubeconfig: { type: "string", value: "FILE", description: "how to reach the API" },
    context: { type: "string", value: "NAME", description: "another than the current context" },
    verbose: { type: "boolean", short: "v", description: "log more" },
  },
  arguments: [],
  examples: ["berth controller --kubeconfig ~/.kube/config"],
  run: runController,
};

async function runController(call: Call): Promise<number> {
  const { terminal } = call;
  const kubeconfig = call.string("kubeconfig");
  if (kubeconfig === undefined)
    throw usageError(`--kubeconfig is missing. Usage: berth ${controller.usage}`);
  const interrupted = terminal.interrupted;
  const { startRemoteControllers } = await import("../../app/index.ts");
  const running = await startRemoteControllers({
    kubeconfig: resolve(terminal.directory, kubeconfig),
    context: call.string("context"),
    verbose: call.flag("verbose"),
    logLine: (line) => terminal.note(line),
  });
  terminal.print(`berth's controllers are running against ${running.server}`);
  await interrupted;
  await running.stop();
  return exitCodes.ok;
}
