import assert from "node:assert/strict";
import { stringify } from "yaml";
import {
  hypervisorKind,
  virtualMachineKind,
  vmImageKind,
  type VirtualMachine,
} from "../../src/api/index.ts";
import { orphans, runOrphans } from "../../src/cli/commands/orphans.ts";
import { runWhy, why } from "../../src/cli/commands/why.ts";
import type { Person } from "../../src/cli/connect/person.ts";
import type { Call, Command } from "../../src/cli/command.ts";
import type { Machine } from "../../src/cli/objects/machine.ts";
import { parseCall } from "../../src/cli/parse.ts";
import { openProxmox } from "../../src/controllers/testing/simulated-proxmox.ts";
import type { StageOptions } from "../../src/controllers/testing/simulated-proxmox.ts";
import { getVm, until } from "../../src/controllers/testing/world.ts";
import type { Incarnation, World } from "../../src/controllers/testing/world.ts";
import type { ControllersOptions } from "../../src/controllers/index.ts";
import type { PveReply, PveRequest, Send } from "../../src/drivers/proxmox/index.ts";
import { formatTime } from "../../src/kernel/clock.ts";
import type { ProxmoxModel, Release } from "../../src/sim/index.ts";
import { wordsOf } from "./requests.ts";

/** A story that tells itself: what people do, what Berth says, and what reaches the hypervisor. */
export interface Story {
  /** The name of its file. */
  readonly file: string;
  readonly title: string;
  tell(narrator: Narrator): Promise<void>;
}

type Holds = (vm: VirtualMachine | undefined) => boolean;

export interface Setting {
  readonly release?: Release;
  readonly nodes?: readonly string[];
  /** What the network does to a request. */
  readonly between?: StageOptions["between"];
  /** Of the Hypervisor, beside its connection. */
  readonly hypervisor?: object;
  readonly image?: string;
}

const namespace = "default";
/** Days pass in stories: a leader that renewed its lease every other second would fill them. */
const longLease = { durationMs: 3_600_000, validMs: 3_000_000, retryMs: 600_000 };
const dayMs = 24 * 60 * 60_000;
const shownConditions = new Set(["Ready", "Synced", "Stalled", "Reconciling"]);
const settledMs = 10_000;
const patienceMs = 3_600_000;
const imageFile = "local:import/debian-12-generic-amd64.qcow2";

/** Runs Berth whole on a virtual clock, and writes down what is to be told, as Markdown. */
export class Narrator {
  readonly #lines: string[] = [];
  #scene: { readonly world: World; readonly proxmox: ProxmoxModel } | undefined;
  /** What reached the hypervisor and was not told yet. */
  readonly #effects: string[] = [];

  get text(): string {
    return `${this.#lines.join("\n").trim()}\n`;
  }

  get world(): World {
    assert.ok(this.#scene, "the scene is set first");
    return this.#scene.world;
  }

  get proxmox(): ProxmoxModel {
    assert.ok(this.#scene, "the scene is set first");
    return this.#scene.proxmox;
  }

  /** A cluster with nothing on it but an image, and Berth beside it. Nothing runs yet. */
  async set(setting: Setting = {}): Promise<void> {
    const { release = "9.2", between, nodes, image = imageFile } = setting;
    const carry = between ?? ((request: PveRequest, send: Send) => send(request));
    const { world, proxmox } = await openProxmox(release, {
      ...(nodes === undefined ? {} : { nodes }),
      between: (request, send) => this.#carry(request, (sent) => carry(sent, send)),
    });
    this.#scene = { world, proxmox };
    await this.#declareGround(setting.hypervisor ?? {}, image);
  }

  /** Berth as `berth up` runs it, unless it is told otherwise; it has seen its hypervisor. */
  async start(options: Partial<ControllersOptions> = {}): Promise<Incarnation> {
    const program = this.world.start({ lease: longLease, whenAbsent: "trust", ...options });
    await this.pass(settledMs);
    return program;
  }

  /** A paragraph, whatever its line breaks. */
  say(text: string): void {
    this.#lines.push(...wrapped(text), "");
  }

  heading(text: string): void {
    this.#lines.push(`## ${text}`, "");
  }

  /** Somebody declares a machine, and we see what they wrote. */
  async declare(name: string, spec: object): Promise<void> {
    const written = { hypervisorRef: { name: "homelab" }, ...spec };
    const head = { apiVersion: "berth.dev/v1alpha1", kind: "VirtualMachine", metadata: { name } };
    this.#block("yaml", stringify({ ...head, spec: written }));
    const metadata = { namespace, name };
    // cast: stories write what people write; what is wrong with it the API says.
    const object = { ...head, metadata, spec: written } as unknown as VirtualMachine;
    await this.world.client.of(virtualMachineKind).create(object);
  }

  async edit(name: string, spec: object): Promise<void> {
    this.#block("yaml", stringify({ spec }));
    await this.world.client.of(virtualMachineKind).patch({ namespace, name }, { merge: { spec } });
  }

  async delete(name: string): Promise<void> {
    await this.world.client.of(virtualMachineKind).delete({ namespace, name });
  }

  /** Lets time pass until it holds. A story in which it never does is no story. */
  async until(what: string, holds: Holds, name: string): Promise<void> {
    const check = async (): Promise<boolean> => holds(await getVm(this.world.client, name));
    const hasCome = await until(this.world, check, patienceMs);
    const vm = await getVm(this.world.client, name);
    assert.ok(
      hasCome,
      `never ${what}: ${JSON.stringify([vm?.status, this.#effects, this.world.log])}`,
    );
  }

  /** Lets so much time pass, whatever happens. */
  async pass(ms: number): Promise<void> {
    await until(this.world, () => false, ms);
  }

  /** The conditions of a machine; those that say the same, together. */
  async conditions(name: string): Promise<void> {
    const vm = await getVm(this.world.client, name);
    const groups = new Map<string, string[]>();
    for (const { type, status, reason, message } of vm?.status?.conditions ?? []) {
      if (!shownConditions.has(type)) continue;
      const text = `${reason} | ${message}`;
      groups.set(text, [...(groups.get(text) ?? []), `${type}=${status}`]);
    }
    const rows = [...groups].map(([text, states]) => `| ${states.join(", ")} | ${text} |`);
    this.#lines.push(`At ${this.time()} \`${name}\` says:`, "");
    this.#lines.push("| conditions | reason | message |", "|---|---|---|", ...rows, "");
  }

  /** What `berth why` prints. */
  async why(name: string): Promise<void> {
    await this.#console(why, [`vm/${name}`], (call) => runWhy(call, this.#machine()));
  }

  /** What `berth orphans` prints; what it is told to do is done later. */
  async orphans(...words: readonly string[]): Promise<void> {
    await this.#console(orphans, words, (call) => runOrphans(call, this.#machine(), nobody));
  }

  /** What reached the hypervisor since it was last told. */
  effects(): void {
    const told = this.#effects.splice(0);
    if (told.length === 0) {
      this.#lines.push("Nothing that changes anything reached the hypervisor.", "");
      return;
    }
    this.#lines.push("What reached the hypervisor:", "", ...told.map((line) => `- ${line}`), "");
  }

  /** Machines and volumes of guests, read from the cluster's own files. */
  inventory(): void {
    const { guests, volumes } = this.proxmox.cluster.state;
    const machines = Object.entries(guests).map(([id, { node, text }]) => {
      const called = /^name: (.*)$/m.exec(text)?.[1] ?? "without a name";
      return `- machine ${id} (${called}) on ${node}`;
    });
    const stored = Object.values(volumes).flatMap((there) => {
      return there.filter(({ vmid }) => vmid !== undefined).map(({ name }) => `- volume ${name}`);
    });
    const lines = [...machines, ...stored.toSorted()];
    this.#lines.push("On the cluster, by its own files:", "");
    this.#lines.push(...(lines.length === 0 ? ["- no machine, and no volume of one"] : lines), "");
  }

  /** The time of the day, and from the second day on which day it is. */
  time(): string {
    const day = Math.floor(this.world.clock.monotonicMs() / dayMs) + 1;
    const time = formatTime(this.world.clock.nowMs()).slice(11, 19);
    return day === 1 ? time : `${time} on day ${day}`;
  }

  async #carry(request: PveRequest, send: Send): Promise<PveReply> {
    const reply = await send(request);
    if (request.method !== "GET") this.#effects.push(`${this.time()} ${wordsOf(request, reply)}`);
    return reply;
  }

  async #console(
    command: Command,
    words: readonly string[],
    run: (call: Call) => Promise<number>,
  ): Promise<void> {
    const out: string[] = [];
    const terminal = {
      print: (text: string) => void out.push(...text.split("\n")),
      note: (text: string) => void out.push(text),
      interrupted: new Promise<string>(() => undefined),
      directory: "/home/ada",
    };
    await run(parseCall(command, words, terminal));
    this.#block("console", [`$ berth ${command.name} ${words.join(" ")}`, ...out].join("\n"));
  }

  #block(language: string, text: string): void {
    this.#lines.push(`\`\`\`${language}`, text.trimEnd(), "```", "");
  }

  async #declareGround(spec: object, image: string): Promise<void> {
    const { client } = this.world;
    await client.of(vmImageKind).delete({ namespace, name: "debian" });
    await client.of(hypervisorKind).delete({ name: "model" });
    await client.of(hypervisorKind).create({
      apiVersion: "berth.dev/v1alpha1",
      kind: "Hypervisor",
      metadata: { name: "homelab" },
      spec: {
        type: "proxmox",
        endpoints: ["https://homelab.example:8006"],
        credentials: { secretRef: { namespace: "berth-system", name: "model" } },
        defaults: { storage: "local-zfs" },
        ...spec,
      },
    });
    const volume = { hypervisorRef: { name: "homelab" }, id: image };
    await client.of(vmImageKind).create({
      apiVersion: "berth.dev/v1alpha1",
      kind: "VMImage",
      metadata: { namespace, name: "debian-12" },
      spec: { source: { volume } },
    });
  }

  #machine(): Machine {
    const { clock, transport } = this.world;
    return {
      clock,
      isTerminal: false,
      environment: () => undefined,
      dial: () => ({ send: transport, close: () => undefined }),
      readFile: (path) => (path.endsWith("kubeconfig") ? kubeconfig : undefined),
      readFolder: () => undefined,
      readInput: async () => "",
      writeTemporary: () => assert.fail("no story writes files"),
      removeTemporary: () => undefined,
      runEditor: async () => 0,
    };
  }
}

/** Nobody sits at the terminal: what has to be confirmed is confirmed by a flag. */
const nobody: Person = {
  isPresent: false,
  ask: () => assert.fail("nobody is asked"),
  askSecretly: () => assert.fail("nobody is asked"),
};

const kubeconfig = `
current-context: c
contexts: [{ name: c, context: { cluster: c, user: u } }]
clusters: [{ name: c, cluster: { server: "https://berth.test:7443" } }]
users: [{ name: u, user: { token: t } }]
`;

export function isReady(vm: VirtualMachine | undefined): boolean {
  return hasCondition(vm, "Ready", "True");
}

export function hasFailed(category: string): (vm: VirtualMachine | undefined) => boolean {
  return (vm) => vm?.status?.failure?.category === category;
}

function hasCondition(vm: VirtualMachine | undefined, type: string, status: string): boolean {
  if (vm?.status?.observedGeneration !== vm?.metadata.generation) return false;
  return vm?.status?.conditions?.some((one) => one.type === type && one.status === status) ?? false;
}

const columnsMax = 100;

function wrapped(text: string): string[] {
  const lines = [""];
  for (const word of text.trim().split(/\s+/)) {
    const line = lines.at(-1) ?? "";
    const longer = line === "" ? word : `${line} ${word}`;
    if (longer.length > columnsMax) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}
