import { relative, resolve } from "node:path";
import { type Call, type Command, exitCodes } from "../command.ts";
import { logFormatOption, readLogFormat } from "../log-format.ts";
import { readPort } from "../port.ts";
import { version } from "../version.ts";

/** Not 6443: the machine may well run a Kubernetes of its own. */
const defaultPort = 7443;

export const up: Command = {
  name: "up",
  summary: "run the control plane here, in the foreground",
  description:
    "Serves a Kubernetes-compatible API from a data folder on this machine, on loopback unless told. " +
    "The first start makes a certificate authority, an encryption key and an administrator's " +
    "kubeconfig in the folder.\n\n" +
    "Ctrl-C stops it cleanly; kill -9 loses nothing that was acknowledged. A second one on the same " +
    "folder is refused.",
  usage: "up [--data DIR] [--port N] [--listen ADDR] [--tls-san NAME]... [--no-demo]",
  options: {
    data: { type: "string", value: "DIR", default: ".berth", description: "the data folder" },
    port: {
      type: "string",
      value: "N",
      default: String(defaultPort),
      description: "the API's port; 0 takes a free one",
    },
    listen: {
      type: "string",
      value: "ADDR",
      default: "127.0.0.1",
      description: "the address to listen on",
    },
    "tls-san": {
      type: "strings",
      value: "NAME",
      description: "a further name or address that clients use; may be repeated",
    },
    "no-demo": {
      type: "boolean",
      description: "start no simulated hypervisor",
    },
    "serve-all": {
      type: "boolean",
      description: "also serve kinds whose controllers are not there yet, for tests",
    },
    verbose: { type: "boolean", short: "v", description: "log more" },
    "log-format": logFormatOption,
  },
  arguments: [],
  isService: true,
  examples: ["berth up", "berth up --data /var/lib/berth --listen 0.0.0.0 --tls-san berth.lan"],
  run: runUp,
};

async function runUp(call: Call): Promise<number> {
  const { terminal } = call;
  const interrupted = terminal.interrupted;
  const data = resolve(terminal.directory, call.string("data") ?? ".berth");
  // Only here: whoever asks for help need not wait for the whole control plane to load.
  const { startControlPlane } = await import("../../app/index.ts");
  const plane = await startControlPlane({
    data,
    version: version(),
    port: readPort(call.string("port")),
    host: call.string("listen") ?? "127.0.0.1",
    tlsNames: call.strings("tls-san"),
    serveAll: call.flag("serve-all"),
    demo: !call.flag("no-demo"),
    verbose: call.flag("verbose"),
    logFormat: readLogFormat(call.string("log-format")),
    logLine: (line) => terminal.note(line),
  });
  const kubeconfig = shortPath(terminal.directory, plane.kubeconfig);
  terminal.print(`berth is ready: API ${plane.url}, kubeconfig ${kubeconfig}`);
  const ended = await Promise.race([interrupted, plane.failed]);
  await plane.stop();
  if (ended instanceof Error) throw ended;
  return exitCodes.ok;
}

/** As people would type it: `.berth/kubeconfig` where that is enough. */
function shortPath(directory: string, path: string): string {
  const short = relative(directory, path);
  return short.startsWith("..") ? path : short;
}
