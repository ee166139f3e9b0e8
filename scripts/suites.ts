import { join } from "node:path";
import type { Suite, Work } from "./runner/suite.ts";
import { kubeApiserver } from "./real/kube-apiserver.ts";
import { kubectl } from "./real/kubectl.ts";
import { promtool } from "./real/promtool.ts";
import { proxmoxer } from "./real/proxmoxer.ts";
import { terraform } from "./real/terraform.ts";

const node = process.execPath;

/** Every suite, in the order in which they run: what is fast and often breaks goes first. */
export const suites: readonly Suite[] = [
  {
    name: "format",
    proves: "every file looks as oxfmt would write it",
    work: tool("oxfmt", "--check"),
    minutes: 0.5,
    fast: true,
  },
  {
    name: "lint",
    proves: "oxlint finds nothing, with types known",
    work: tool("oxlint", "--type-aware", "--deny-warnings", "--report-unused-disable-directives"),
    minutes: 0.5,
    fast: true,
  },
  {
    name: "types",
    proves: "the compiler finds nothing",
    work: tool("tsc", "-p", "."),
    minutes: 0.5,
    fast: true,
  },
  {
    name: "tidy",
    proves: "the repository keeps its own rules: rooms, sizes, what is banned, what is dead",
    work: { kind: "command", command: [node, "scripts/tidy.ts"] },
    minutes: 0.5,
    fast: true,
  },
  {
    name: "unit",
    proves: "each part does what it says, without clock, network or disk",
    work: { kind: "tests", files: ["{src,scripts}/**/*.test.ts"], processes: "shared" },
    minutes: 4,
    fast: true,
  },
  {
    name: "lint-rules",
    proves: "the linter is set up to catch what we rely on it for",
    work: alone("test/lint-rules.test.ts"),
    minutes: 0.5,
  },
  {
    name: "launcher",
    proves: "bin/berth hands over to Node 24 with its signals, its exit code and its death",
    work: alone("test/launcher.test.ts"),
    minutes: 0.5,
  },
  {
    name: "runner",
    proves: "a test that fails, crashes, hangs or is skipped is counted and named",
    work: alone("test/runner.test.ts"),
    minutes: 0.5,
  },
  {
    name: "package",
    proves: "npm pack gives plain JavaScript that installs and runs elsewhere",
    work: alone("test/package.test.ts"),
    minutes: 2,
  },
  {
    name: "start",
    proves: "berth up starts, stops, refuses and remembers as it promises",
    work: alone("test/real/start.test.ts"),
    minutes: 1,
  },
  {
    name: "bad-input",
    proves: "bad input gets one clear sentence",
    work: alone("test/real/bad-input.test.ts"),
    minutes: 1,
  },
  {
    name: "commands",
    proves: "backup, restore, user, crds and help work against a real process",
    work: alone("test/real/commands.test.ts"),
    minutes: 2,
  },
  {
    name: "cli",
    proves: "get, apply, delete, wait, edit and why work on a real server, beside kubectl",
    work: alone("test/real/cli.test.ts"),
    minutes: 2,
  },
  {
    name: "kinds",
    proves: "every rule of every kind refuses what it should, and the examples are admitted",
    work: alone("test/kinds.test.ts"),
    minutes: 0.5,
  },
  {
    name: "proxmox-transport",
    proves: "HTTPS to Proxmox proves the server, keeps the fence and never repeats a write",
    work: alone("test/proxmox-transport.test.ts"),
    minutes: 0.5,
  },
  {
    name: "keeper",
    proves: "a crash at any effect loses no disk that has to stay, and makes no second keeper",
    work: alone("test/keeper-crash.test.ts"),
    minutes: 2,
    long: true,
  },
  {
    name: "client",
    proves: "our own client and informer work over TLS, also over kill -9",
    work: alone("test/real/client.test.ts"),
    minutes: 1,
  },
  {
    name: "discovery",
    proves: "every kubectl on this machine understands discovery and OpenAPI",
    work: alone("test/real/discovery.test.ts"),
    minutes: 2,
    needs: [kubectl],
  },
  {
    name: "kubectl",
    proves: "every kubectl on this machine works against the embedded API",
    work: alone("test/real/kubectl.test.ts"),
    minutes: 5,
    needs: [kubectl],
  },
  {
    name: "client-node",
    proves: "the Kubernetes client library for JavaScript works, informer included",
    work: alone("test/real/client-node.test.ts"),
    minutes: 1,
  },
  {
    name: "sim",
    proves: "berth sim proxmox serves, remembers and hides its hooks as it should",
    work: alone("test/real/sim.test.ts"),
    minutes: 1,
  },
  {
    name: "connect",
    proves: "connect and doctor judge certificates, tokens and rights, and a snapshot has its twin",
    work: alone("test/real/connect.test.ts"),
    minutes: 2,
  },
  {
    name: "recordings",
    proves: "the simulated Proxmox answers as the real one did, wherever recordings are at hand",
    work: alone("test/real/recordings.test.ts"),
    minutes: 3,
  },
  {
    name: "cv4pve",
    proves: "somebody else's JavaScript client works against the simulated Proxmox",
    work: alone("test/real/clients/cv4pve.test.ts"),
    minutes: 1,
    long: true,
  },
  {
    name: "proxmoxer",
    proves: "the Python library proxmoxer works against the simulated Proxmox",
    work: alone("test/real/clients/proxmoxer.test.ts"),
    minutes: 2,
    long: true,
    needs: [proxmoxer],
  },
  {
    name: "terraform",
    proves: "Terraform with bpg/proxmox makes, changes and destroys on the simulated Proxmox",
    work: alone("test/real/clients/bpg.test.ts"),
    minutes: 5,
    long: true,
    needs: [terraform],
  },
  {
    name: "histories",
    proves: "no law is broken in deterministic histories of crashes, lost replies and strangers",
    work: alone("test/histories.test.ts"),
    minutes: 10,
    random: "BERTH_SEEDS_FROM",
  },
  {
    name: "upgrade",
    proves: "a data folder of 0.1 goes on with this release, without an effect on any VM",
    work: alone("test/upgrade.test.ts"),
    minutes: 1,
  },
  {
    name: "stories",
    proves: "ten stories of failure go, word by word, as they are written for people",
    work: alone("test/stories.test.ts"),
    minutes: 2,
  },
  {
    name: "saga",
    proves:
      "every step repeated, failed, cut off or deleted at any effect leaves the cluster as it was",
    work: { kind: "tests", files: ["test/saga/*.test.ts"], processes: "beside" },
    minutes: 8,
    random: "BERTH_STRIKES_FROM",
  },
  {
    name: "mutants",
    proves: "tests or histories notice every guard and safety line that is broken on purpose",
    work: alone("test/mutants.test.ts"),
    minutes: 12,
    long: true,
  },
  {
    name: "demo",
    proves: "the README's first machine becomes Ready on the simulated cluster, and goes cleanly",
    work: alone("test/real/demo.test.ts"),
    minutes: 1,
  },
  {
    name: "monitoring",
    proves:
      "metrics, rules, dashboard and docs speak of the same, and Events and log tell the rest",
    work: alone("test/real/monitoring.test.ts"),
    minutes: 1,
  },
  {
    name: "alerts",
    proves: "Prometheus takes the rules, and every alert fires when it should and not before",
    work: alone("test/real/alerts.test.ts"),
    minutes: 0.5,
    needs: [promtool],
  },
  {
    name: "canary",
    proves: "no secret gets into logs, events, metrics, errors, objects, the database or a bundle",
    work: alone("test/real/canary.test.ts"),
    minutes: 2,
  },
  {
    name: "wrong",
    proves: "bad input for machines is one clear complaint, touches nothing, and heals when mended",
    work: alone("test/real/wrong.test.ts"),
    minutes: 5,
    long: true,
  },
  {
    name: "machines",
    proves: "kill -9 during creations and deletions leaves as many machines as declared",
    work: alone("test/real/machines.test.ts"),
    minutes: 5,
  },
  {
    name: "failpoints",
    proves: "killed at any point of its own choice, berth up makes one machine and leaves nothing",
    work: alone("test/real/failpoints.test.ts"),
    minutes: 6,
    long: true,
  },
  {
    name: "hardship",
    proves: "full and refusing disks, clocks that jump and an old backup delete and double nothing",
    work: alone("test/real/hardship.test.ts"),
    minutes: 5,
    long: true,
  },
  {
    name: "kube-apiserver",
    proves:
      "the controllers keep their word on a real Kubernetes API, also when the leader is killed",
    work: alone("test/real/kube-apiserver.test.ts"),
    minutes: 6,
    long: true,
    needs: [kubectl, kubeApiserver],
  },
  {
    name: "kube-upgrade",
    proves:
      "an installation of 0.1 on a real Kubernetes API is upgraded in the middle of its work without an effect on any VM",
    work: alone("test/real/kube-upgrade.test.ts"),
    minutes: 4,
    long: true,
    needs: [kubectl, kubeApiserver],
  },
  {
    name: "crash",
    proves: "kill -9 loses no acknowledged write",
    work: alone("test/real/crash.test.ts"),
    minutes: 5,
  },
  {
    name: "disk-full",
    proves: "a full disk loses no acknowledged write",
    work: alone("test/real/disk-full.test.ts"),
    minutes: 2,
  },
  {
    name: "fuzz",
    proves: "malformed requests neither crash, hang nor fatten the server",
    work: alone("test/real/fuzz.test.ts"),
    minutes: 5,
  },
];

/** A tool from node_modules, under the Node that runs us rather than the one in PATH. */
function tool(name: string, ...args: string[]): Work {
  return { kind: "command", command: [node, join("node_modules", ".bin", name), ...args] };
}

function alone(...files: string[]): Work {
  return { kind: "tests", files, processes: "alone" };
}
