import { resolve } from "node:path";
import { type Call, type Command, exitCodes, usageError } from "../command.ts";
import { logFormatOption, readLogFormat } from "../log-format.ts";
import { readPort } from "../port.ts";
import { version } from "../version.ts";

export const controller: Command = {
  name: "controller",
  summary: "run the controllers against a Kubernetes cluster",
  description:
    "Runs Berth's controllers, in the foreground, against the Kubernetes API that the kubeconfig " +
    "names. Its CRDs come from berth crds. Several may run: one leads, the others wait.",
  usage: "controller --kubeconfig FILE [--context NAME] [--metrics-port N]",
  options: {
    kubeconfig: { type: "string", value: "FILE", description: "how to reach the API" },
    context: { type: "string", value: "NAME", description: "another than the current context" },
    "metrics-port": {
      type: "string",
      value: "N",
      description: "serve metrics there, in plain HTTP; 0 takes a free port; without it, nowhere",
    },
    "metrics-listen": {
      type: "string",
      value: "ADDR",
      default: "127.0.0.1",
      description: "the address for the metrics",
    },
    verbose: { type: "boolean", short: "v", description: "log more" },
    "log-format": logFormatOption,
  },
  arguments: [],
  isService: true,
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
    version: version(),
    verbose: call.flag("verbose"),
    logFormat: readLogFormat(call.string("log-format")),
    ...metricsOf(call),
    logLine: (line) => terminal.note(line),
  });
  const { metricsUrl } = running;
  const metrics = metricsUrl === undefined ? "" : `, metrics on ${metricsUrl}`;
  terminal.print(`berth's controllers are running against ${running.server}${metrics}`);
  await interrupted;
  await running.stop();
  return exitCodes.ok;
}

function metricsOf(call: Call): { metrics?: { host: string; port: number } } {
  const port = call.string("metrics-port");
  if (port === undefined) return {};
  const host = call.string("metrics-listen") ?? "127.0.0.1";
  return { metrics: { host, port: readPort(port, "metrics-port") } };
}
