import { secretResource } from "../../api/builtin/index.ts";
import type { VirtualMachine, VMClass, VMNetwork } from "../../api/index.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer, Failure } from "../../hypervisor/index.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { ApiError } from "../../kernel/status.ts";
import { absent, lookUpImage } from "./absent.ts";
import type { Declaration } from "./declaration.ts";
import { desireMachine, type Desired } from "./desired.ts";
import { discsOf, fillsOf } from "./fills.ts";
import { forbidden } from "./permissions.ts";
import { needsSeed, type Seed, type SeedDocuments } from "./seed.ts";
import type { ConnectedTurn } from "./turn.ts";

/** What a VM comes to with everything that it refers to, and all that is wrong with that. */
export interface Resolved {
  /** As far as it could be found out; absent where even that makes no machine. */
  readonly desired?: Desired;
  readonly findings: readonly Failure[];
}

/** Looks up everything that the VM refers to, and merges it. All that is missing is named. */
export async function resolveVm(turn: ConnectedTurn, node: string | undefined): Promise<Resolved> {
  const { vm, deps, connection } = turn;
  const hypervisor = deps.lookups.hypervisors.get(connection.name);
  if (hypervisor === undefined) return { findings: [absent("Hypervisor", connection.name)] };
  const findings: Failure[] = [];
  const take: Take = (answer, otherwise) => {
    if (answer.ok) return answer.value;
    findings.push(answer.failure);
    return otherwise;
  };
  const vmClass = take(resolveClass(turn), undefined);
  const networks = resolveNetworks(turn, take);
  const refusal = forbidden(vm, hypervisor, networks);
  if (refusal !== undefined) findings.push(refusal);
  const origin = await resolveOrigin(turn, node, take);
  const discs = take(discsOf(turn, turn.vm.status?.node ?? node), new Map());
  const desired = take<Desired | undefined>(
    desireMachine({
      vm,
      hypervisor,
      vmClass,
      networks,
      ...origin,
      discs,
      guestOs: imageGuestOs(turn),
      isNew: turn.claim?.spec.everExisted !== true,
      firstDisk: firstDiskOf(turn),
      storageDefault: onlyStorage(turn),
    }),
    undefined,
  );
  if (desired === undefined) return { findings };
  return { desired: { ...desired, origins: secretsOf(vm, origin) }, findings };
}

/** What was read from Secrets, by the field of spec.cloudInit that refers to them. */
function secretsOf(
  { spec: { cloudInit } }: VirtualMachine,
  { passwordHash, seed }: Pick<Declaration, "passwordHash" | "seed">,
): Record<string, string> {
  const documents = documentKeys.flatMap((key): [string, string][] => {
    const text = cloudInit?.[key]?.secretRef === undefined ? undefined : seed?.documents[key];
    return text === undefined ? [] : [[key, text]];
  });
  return Object.fromEntries(
    passwordHash === undefined ? documents : [...documents, ["passwordHash", passwordHash]],
  );
}

const documentKeys = ["userData", "vendorData", "metaData", "networkData"] as const;

/** The value of an answer; or the other one, and the failure is noted. */
type Take = <T>(answer: Answer<T>, otherwise: T) => T;

/** Of a machine that has no disk yet, as one that is made anew, it is the first that it gets. */
function firstDiskOf({ claim, vm }: ConnectedTurn): string | undefined {
  const { origin, volumes = [] } = claim?.spec ?? {};
  if (origin !== "Created") return undefined;
  const first = volumes.find(({ role, disk }) => role === "Disk" && disk !== undefined);
  return (first ?? firstDeclared(vm))?.disk;
}

function firstDeclared({ spec }: VirtualMachine): { readonly disk: string } | undefined {
  const first = spec.disks?.find(({ state }) => state !== "Absent");
  return first && { disk: first.name };
}

/** What the image says of itself counts when the machine is made, and is then the machine's own. */
function imageGuestOs(turn: ConnectedTurn): Declaration["guestOs"] {
  const { image, clone } = turn.vm.spec.source ?? {};
  const name = image?.name ?? clone?.imageRef?.name;
  if (name === undefined || turn.claim?.spec.everExisted === true) return undefined;
  return lookUpImage(turn, name)?.spec.guestOs;
}

function resolveClass({ vm, deps }: ConnectedTurn): Answer<VMClass | undefined> {
  const { classRef } = vm.spec;
  if (classRef === undefined) return answered(undefined);
  const namespace = vm.metadata.namespace ?? "";
  const vmClass = deps.lookups.classes.get(`${namespace}/${classRef.name}`);
  return vmClass ? answered(vmClass) : failed(absent("VMClass", classRef.name, namespace));
}

/** What counts only until the machine stood: its source and the password of its first boot. */
async function resolveOrigin(
  turn: ConnectedTurn,
  node: string | undefined,
  take: Take,
): Promise<Pick<Declaration, "fills" | "passwordHash" | "seed">> {
  const { everExisted = false, volumes = [] } = turn.claim?.spec ?? {};
  // A machine that is made anew has no volumes, and needs its source again.
  if (everExisted && volumes.length > 0) return { fills: new Map() };
  const fills = take(fillsOf(turn, node), new Map());
  const passwordHash = take(await resolvePassword(turn), undefined);
  // Which storages take a disc is known only where the node is.
  const seed =
    node === undefined ? undefined : take(await resolveSeed(turn, node, passwordHash), undefined);
  return { fills, passwordHash, seed };
}

/** What goes onto a disc of our own, and where that can lie. */
async function resolveSeed(
  turn: ConnectedTurn,
  node: string | undefined,
  passwordHash: string | undefined,
): Promise<Answer<Seed | undefined>> {
  const { vm } = turn;
  const { cloudInit } = vm.spec;
  const everExisted = turn.claim?.spec.everExisted ?? false;
  if (cloudInit === undefined || everExisted || !needsSeed(vm)) return answered(undefined);
  const storage = discStorage(turn, node, cloudInit.storage);
  if (storage === undefined) return failed(noDiscStorage(node));
  const documents = await resolveDocuments(turn, cloudInit);
  if (!documents.ok) return documents;
  const hostname = cloudInit.hostname ?? hostnameOf(vm);
  return answered({ storage, documents: documents.value, hostname, passwordHash, cloudInit });
}

function hostnameOf({ spec, metadata }: VirtualMachine): string {
  return spec.machineName ?? metadata.name ?? "";
}

async function resolveDocuments(
  turn: ConnectedTurn,
  cloudInit: NonNullable<VirtualMachine["spec"]["cloudInit"]>,
): Promise<Answer<SeedDocuments>> {
  const documents: SeedDocuments = {};
  for (const key of documentKeys) {
    const { inline, secretRef } = cloudInit[key] ?? {};
    if (inline !== undefined) documents[key] = inline;
    if (secretRef === undefined) continue;
    const text = await readSecret(turn, secretRef);
    if (!text.ok) return text;
    documents[key] = text.value;
  }
  return answered(documents);
}

/** The storage that is named if it takes discs; else the first on the node that does. */
function discStorage(
  { connection }: ConnectedTurn,
  node: string | undefined,
  named: string | undefined,
): string | undefined {
  const { inventory, spec } = connection;
  const names = inventory.storages
    .filter((row) => row.node === node && row.isUsable && row.contents.includes("ISOs"))
    .map(({ name }) => name)
    .toSorted();
  const preferred = [named, spec.defaults?.imageStorage];
  return preferred.find((name) => name !== undefined && names.includes(name)) ?? names[0];
}

function noDiscStorage(node: string | undefined): Failure {
  return {
    category: "ConfigurationError",
    message: `No storage on the node ${node ?? ""} takes the disc with the data of the first boot.`,
    remedy: "Let a storage of that node take ISO images. Berth goes on by itself.",
  };
}

function resolveNetworks({ vm, deps }: ConnectedTurn, take: Take): Map<string, VMNetwork> {
  const networks = new Map<string, VMNetwork>();
  for (const { networkRef } of vm.spec.networks ?? []) {
    if (networkRef === undefined) continue;
    const { name } = networkRef;
    const network = deps.lookups.networks.get(name);
    take(network ? answered(network) : failed(absent("VMNetwork", name)), undefined);
    if (network !== undefined) networks.set(name, network);
  }
  return networks;
}

/** The storage for disks where there is only one to choose from. */
function onlyStorage({ connection }: ConnectedTurn): string | undefined {
  const taking = connection.inventory.storages.filter(({ contents }) => contents.includes("Disks"));
  const names = new Set(taking.map(({ name }) => name));
  return names.size === 1 ? [...names][0] : undefined;
}

async function resolvePassword(turn: ConnectedTurn): Promise<Answer<string | undefined>> {
  const ref = turn.vm.spec.cloudInit?.user?.passwordHashSecretRef;
  return ref === undefined ? answered(undefined) : readSecret(turn, ref);
}

async function readSecret(
  { vm, deps }: ConnectedTurn,
  ref: { readonly name: string; readonly key: string },
): Promise<Answer<string>> {
  const namespace = vm.metadata.namespace ?? "";
  try {
    const secret = await deps.client.of(secretResource).get({ namespace, name: ref.name });
    const data = secret["data"];
    const value = isJsonObject(data) ? data[ref.key] : undefined;
    if (typeof value === "string") return answered(Buffer.from(value, "base64").toString());
    return failed(noKey(vm, ref));
  } catch (error) {
    return failed(unreadable(error, ref.name, namespace));
  }
}

/** On a cluster of Kubernetes the controllers may do only what their account was given. */
function unreadable(error: unknown, name: string, namespace: string): Failure {
  if (!(error instanceof ApiError)) throw error;
  if (error.code === 404) return absent("Secret", name, namespace);
  if (error.code !== 403) throw error;
  return {
    category: "DependencyNotReady",
    message: `The controllers may not read the Secret ${namespace}/${name}: ${error.message}`,
    remedy: "Let their account get Secrets of that namespace. Berth goes on by itself.",
  };
}

function noKey({ metadata }: VirtualMachine, ref: { name: string; key: string }): Failure {
  return {
    category: "DependencyNotReady",
    message: `The Secret ${metadata.namespace ?? ""}/${ref.name} has no key ${ref.key}.`,
    remedy: "Add the key to the Secret. Berth goes on by itself.",
  };
}
