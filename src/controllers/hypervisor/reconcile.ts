import { annotations, failureReasons, finalizers, hypervisorKind } from "../../api/index.ts";
import type { Hypervisor, VirtualMachine } from "../../api/index.ts";
import type { Informer } from "../../client/index.ts";
import { categoryPolicies } from "../../hypervisor/index.ts";
import type { HypervisorDriver, Inventory, SystemView } from "../../hypervisor/index.ts";
import { objectKey } from "../../kernel/object.ts";
import type { Random } from "../../kernel/random.ts";
import {
  addFinalizer,
  again,
  nextAttempt,
  removeFinalizer,
  settled,
  writeStatus,
  type Outcome,
} from "../../runtime/index.ts";
import type { Ledger, WrittenObjects } from "../claims/index.ts";
import { describeFailure } from "../failures/index.ts";
import type { Reports } from "../reports/index.ts";
import { guarded } from "./breaker.ts";
import type { Connect, Connections } from "./connections.ts";
import { recordCredentials, type GivenCredentials } from "./given-credentials.ts";
import { isNewer, observeOnlyOf, settleEpoch } from "./epoch.ts";
import type { EpochDeps, SettledEpoch, Standing } from "./epoch.ts";
import { lastFailure, stalledMs, triedWith } from "./last-failure.ts";
import { planIdentity, planInUse, type InUse, type Trouble } from "./plan.ts";
import { usableSecrets, usedSecret, type UsableSecrets } from "./secrets.ts";
import { hypervisorStatusOf, type HypervisorView, type SweepTrouble } from "./status.ts";
import { freeSecret } from "./steps.ts";

export interface HypervisorDeps extends EpochDeps {
  readonly random: Random;
  readonly connect: Connect;
  readonly connections: Connections;
  readonly ledger: Ledger;
  readonly objects: WrittenObjects<Hypervisor>;
  readonly hypervisors: Informer<Hypervisor>;
  /** With the index `hypervisor`. */
  readonly vms: Informer<VirtualMachine>;
  readonly sessions: Map<string, Session>;
  /** Why what is there is not compared with what is declared; nothing where it is. */
  readonly sweepTroubleOf?: (hypervisor: Hypervisor) => SweepTrouble | undefined;
  readonly reports: Pick<Reports, "became">;
  /** Has a hypervisor looked at now, and not at the next tick. */
  readonly lookNow: (hypervisor: string) => void;
  /** In place of spec.limits.pollSeconds. */
  readonly tickMs?: number | undefined;
  /** When this process began to work. */
  readonly beganMs: number;
}

/** What a process remembers of a hypervisor. All of it can be lost. */
export interface Session {
  /** What the driver was made from: another endpoint or Secret needs another driver. */
  readonly createdFrom: string;
  readonly driver: HypervisorDriver;
  /** The same for everybody else: behind the breaker. */
  readonly shared: HypervisorDriver;
  system?: SystemView;
  systemAtMs?: number;
  /** Looks that failed, one after the other. */
  failures: number;
  /** How often in a row it was found to be in trouble: a first lost reply is none yet. */
  troubles: number;
  /** Not before, unless the object or the Secret is another. */
  retryAtMs: number;
  /** Whether this run acts here, and what that was decided on. Absent: not decided yet. */
  epoch?: SettledEpoch;
  /** For which endpoints its credentials were given is recorded. */
  isNoted?: boolean;
  /** The last word of a person who asked for another try. */
  asked?: string | undefined;
}

export const untroubled = { failures: 0, troubles: 0, retryAtMs: 0 } as const;

/** How often the system itself is asked who it is; in between the inventory is enough. */
const systemMs = 10 * 60_000;
/** One reply that is lost is no reason to call a thousand machines unknown. */
const failuresMax = 3;
/** But one that did not come for so long is. */
const silenceMs = 10_000;
const retrySoonMs = 1_000;

/** One tick of one hypervisor: connected, known, looked at whole. */
export async function reconcileHypervisor(key: string, deps: HypervisorDeps): Promise<Outcome> {
  const hypervisor = deps.objects.get(key);
  if (hypervisor === undefined) return drop(key, deps);
  const held = await holdInUse(hypervisor, deps);
  if (held === undefined) return drop(key, deps);
  const secrets = await usableSecrets(deps.client, held);
  if ("trouble" in secrets) {
    // Not even an old connection may go on: it is to the old endpoints, and has the credentials.
    if (secrets.isForOthers) closeSession(key, deps);
    return troubled(held, deps, secrets.trouble);
  }
  const session = sessionOf(held, deps, secrets);
  heedWord(session, held);
  // A status that was lost says nothing: then it is looked at once more, to say why.
  const isTold = held.status?.conditions !== undefined;
  const waitMs = isTold ? session.retryAtMs - deps.clock.nowMs() : 0;
  if (waitMs > 0) return again("Backoff", Math.min(waitMs, tickMsOf(held, deps)));
  return tick(held, deps, { ...secrets, session });
}

/** A person who asks for another try need not wait for the next one. */
function heedWord(session: Session, { metadata }: Hypervisor): void {
  const asked = metadata.annotations?.[annotations.reconcileAt];
  if (asked === session.asked) return;
  session.asked = asked;
  session.retryAtMs = 0;
  // Also who it is and what we may: a person may just have granted it.
  delete session.systemAtMs;
}

function drop(key: string, deps: HypervisorDeps): Outcome {
  closeSession(key, deps);
  deps.connections.delete(key);
  return settled;
}

/**
 * Whoever still works over it sends nothing more: it does not hear what the next session sees.
 * Until that one has looked, nobody need try.
 */
function closeSession(key: string, { sessions, connections }: HypervisorDeps): void {
  const session = sessions.get(key);
  if (session === undefined) return;
  delete session.epoch;
  connections.doubt(key);
  session.driver.close();
  sessions.delete(key);
}

/** Holds the finalizer while somebody uses it. Resolves with undefined when it may go. */
async function holdInUse(
  hypervisor: Hypervisor,
  deps: HypervisorDeps,
): Promise<Hypervisor | undefined> {
  const { client, objects } = deps;
  const kind = client.of(hypervisorKind);
  if (hypervisor.metadata.deletionTimestamp === undefined) {
    // Also while nobody uses it: the Secret has to be let go before it may leave.
    const added = await addFinalizer<Hypervisor>(kind, hypervisor, finalizers.inUse);
    return objects.note(added);
  }
  if (inUseOf(hypervisor, deps) !== undefined) return hypervisor;
  for (const use of ["credentials", "unlockCredentials"] as const) {
    const ref = hypervisor.spec[use]?.secretRef;
    if (ref === undefined || isSecretShared(hypervisor, deps, ref)) continue;
    await freeSecret(client, `${ref.namespace}/${ref.name}`);
  }
  await removeFinalizer<Hypervisor>(kind, hypervisor, finalizers.inUse);
  return undefined;
}

function inUseOf({ metadata }: Hypervisor, { vms, ledger }: HypervisorDeps): InUse | undefined {
  const { name = "" } = metadata;
  return planInUse({
    vms: vms.byIndex("hypervisor", name).map((vm) => objectKey(vm.metadata)),
    held: ledger.countOn(name),
    retaining: ledger.retainingOn(name),
  });
}

function isSecretShared(
  { metadata }: Hypervisor,
  { hypervisors }: HypervisorDeps,
  ref: { readonly namespace: string; readonly name: string },
): boolean {
  const others = hypervisors.list().filter((other) => other.metadata.uid !== metadata.uid);
  const refs = others.flatMap(({ spec }) => [spec.credentials, spec.unlockCredentials]);
  return refs.some((theirs) => {
    return theirs?.secretRef.namespace === ref.namespace && theirs.secretRef.name === ref.name;
  });
}

export function sessionOf(
  hypervisor: Hypervisor,
  deps: HypervisorDeps,
  { secret, unlock }: UsableSecrets,
): Session {
  const { name = "" } = hypervisor.metadata;
  const { endpoints, tls, credentials, limits, idRange, storages } = hypervisor.spec;
  const parts = [endpoints, tls, credentials, limits, idRange, storages, secret?.resourceVersion];
  const createdFrom = JSON.stringify([...parts, unlock?.key, unlock?.resourceVersion]);
  const old = deps.sessions.get(name);
  if (old?.createdFrom === createdFrom) return old;
  closeSession(name, deps);
  const driver = deps.connect(hypervisor, secret?.credentials, unlock?.credentials);
  const asked = hypervisor.metadata.annotations?.[annotations.reconcileAt];
  const doubt = (): void => {
    if (deps.connections.doubt(name)) deps.lookNow(name);
  };
  const mayAct = (): boolean => session.epoch?.standing.is === "acting";
  const shared = guarded(driver, { clock: deps.clock, doubt, mayAct });
  const last = lastFailure(hypervisor, { createdFrom, asked }, deps.beganMs);
  const session: Session = { createdFrom, driver, shared, ...untroubled, ...last, asked };
  deps.sessions.set(name, session);
  return session;
}

interface Look extends UsableSecrets {
  readonly session: Session;
}

async function tick(hypervisor: Hypervisor, deps: HypervisorDeps, look: Look): Promise<Outcome> {
  const { session } = look;
  const sinceMs = deps.clock.monotonicMs();
  const system = await systemOf(session, deps);
  if (!system.ok) return unreached(hypervisor, deps, { session, sinceMs, failure: system.failure });
  const { systemId } = system.value;
  const others = deps.hypervisors.list();
  const stranger = planIdentity(hypervisor, systemId, others);
  if (stranger !== undefined) return troubled(hypervisor, deps, stranger);
  const known = await writeSystemId(hypervisor, deps, systemId);
  const inventory = await session.driver.inventory();
  if (!inventory.ok)
    return unreached(known, deps, { session, sinceMs, failure: inventory.failure });
  Object.assign(session, untroubled);
  const sight = { driver: session.driver, inventory: inventory.value, systemId };
  const old = session.epoch;
  // Until it is known who wrote a newer one, nothing is sent, and nobody need try.
  if (old !== undefined && isNewer(old, inventory.value, deps)) {
    delete session.epoch;
    deps.connections.doubt(known.metadata.name ?? "");
  }
  session.epoch = await settleEpoch(known, deps, { ...sight, old });
  return connected(known, deps, { ...look, system: system.value, inventory: inventory.value });
}

export async function systemOf(
  session: Session,
  { clock }: HypervisorDeps,
): ReturnType<HypervisorDriver["system"]> {
  const isFresh = clock.nowMs() - (session.systemAtMs ?? 0) < systemMs;
  if (session.system !== undefined && isFresh) return { ok: true, value: session.system };
  const answer = await session.driver.system();
  if (!answer.ok) return answer;
  session.system = answer.value;
  session.systemAtMs = clock.nowMs();
  return answer;
}

/** Written once, at first contact. */
async function writeSystemId(
  hypervisor: Hypervisor,
  { client, objects }: HypervisorDeps,
  systemId: string,
): Promise<Hypervisor> {
  const { spec } = hypervisor;
  if (spec.systemId === systemId) return hypervisor;
  const next = { ...hypervisor, spec: { ...spec, systemId } };
  return objects.note(await client.of(hypervisorKind).update(next));
}

interface Connected extends Look {
  readonly system: SystemView;
  readonly inventory: Inventory;
}

async function connected(
  hypervisor: Hypervisor,
  deps: HypervisorDeps,
  { session, secret, unlock, system, inventory }: Connected,
): Promise<Outcome> {
  const { name = "" } = hypervisor.metadata;
  const { spec } = hypervisor;
  const sweepTrouble = deps.sweepTroubleOf?.(hypervisor);
  const given = {
    credentials: usedSecret(hypervisor, secret),
    unlockCredentials: usedSecret(hypervisor, unlock),
  };
  await noteGiven(hypervisor, deps, { session, given });
  const standing = session.epoch?.standing;
  const view = { system, inventory, ...given, sweepTrouble, standing };
  await write(hypervisor, deps, { is: "connected", ...view });
  const { systemId, capabilities } = system;
  const { shared: driver } = session;
  const observeOnly = observeOnlyOf(standing);
  const connection = { name, systemId, driver, spec, capabilities, inventory, observeOnly };
  deps.connections.set(name, { is: "ready", connection });
  return again("Tick", Math.min(tickMsOf(hypervisor, deps), epochInMs(standing, deps)));
}

/** Once for each session: the status, which tells the same, may be lost. */
async function noteGiven(
  hypervisor: Hypervisor,
  { client, hypervisors }: HypervisorDeps,
  { session, given }: { readonly session: Session; readonly given: GivenCredentials },
): Promise<void> {
  if (session.isNoted === true) return;
  const uids = new Set(hypervisors.list().map(({ metadata }) => metadata.uid ?? ""));
  await recordCredentials(client, hypervisor, { given, uids });
  session.isNoted = true;
}

/** Nothing is done before the epoch is written: its next try does not wait for a tick. */
function epochInMs(standing: Standing | undefined, { clock }: HypervisorDeps): number {
  const { retryAtMs = Infinity } = standing?.is === "observing" ? standing : {};
  return Math.max(retryAtMs - clock.monotonicMs(), retrySoonMs);
}

interface Unanswered {
  readonly session: Session;
  /** When the look began. */
  readonly sinceMs: number;
  readonly failure: Trouble["failure"];
}

async function unreached(
  hypervisor: Hypervisor,
  deps: HypervisorDeps,
  { session, sinceMs, failure }: Unanswered,
): Promise<Outcome> {
  const { name = "" } = hypervisor.metadata;
  session.failures += 1;
  delete session.systemAtMs;
  const wasReady = deps.connections.of(name).is === "ready";
  const isSilent = deps.clock.monotonicMs() - sinceMs >= silenceMs;
  const mayBeLost = session.failures < failuresMax && !isSilent;
  if (failure.category === "NetworkError" && wasReady && mayBeLost) {
    deps.connections.doubt(name);
    return again("Unreached", retrySoonMs);
  }
  session.troubles += 1;
  const reason = failure.connection ?? failureReasons[failure.category];
  return troubled(hypervisor, deps, { reason, failure });
}

/** Says what is wrong, and takes the connection away from everybody. */
async function troubled(
  hypervisor: Hypervisor,
  deps: HypervisorDeps,
  trouble: Trouble,
): Promise<Outcome> {
  const { name = "" } = hypervisor.metadata;
  const { failure } = trouble;
  const { clock, random, sessions, connections } = deps;
  const session = sessions.get(name);
  const policy = categoryPolicies[failure.category];
  const attempts = Math.max(1, session?.troubles ?? 1);
  const next = nextAttempt(policy, attempts, random);
  const nowMs = clock.nowMs();
  const afterMs = next.type === "retry" ? next.afterMs : stalledMs;
  // A missing Secret is looked for at every tick; a refusal is not repeated so often.
  if (session !== undefined && policy.next !== "wait") session.retryAtMs = nowMs + afterMs;
  const old = hypervisor.status?.failure;
  const nextLook = policy.next === "retry" ? { nextLookMs: nowMs + afterMs } : {};
  connections.set(name, { is: "away", failure: awayFailure(name, trouble), ...nextLook });
  const nextRetryMs = policy.next === "retry" ? nowMs + afterMs : undefined;
  const declaration = triedWith(session);
  const described = describeFailure(failure, { nowMs, old, attempts, nextRetryMs, declaration });
  const isStalled = next.type === "stall";
  await write(hypervisor, deps, { is: "away", trouble, failure: described, isStalled });
  return again("Troubled", Math.min(afterMs, tickMsOf(hypervisor, deps)));
}

/** As the machines on it are told: they wait for the Hypervisor, or cannot be seen. */
function awayFailure(name: string, { failure }: Trouble): Trouble["failure"] {
  const isNetwork = failure.category === "NetworkError";
  const { remedy = "" } = failure;
  const isAskedAgain = categoryPolicies[failure.category].next === "retry";
  const look =
    `When it is asked again: berth why hypervisor/${name}. ` +
    "Machines on it go on by themselves.";
  return {
    ...failure,
    category: isNetwork ? "NetworkError" : "DependencyNotReady",
    message: `The Hypervisor ${name} cannot be used: ${failure.message}`,
    ...(isAskedAgain ? { remedy: `${remedy} ${look}`.trim() } : {}),
  };
}

async function write(
  hypervisor: Hypervisor,
  deps: HypervisorDeps,
  view: HypervisorView,
): Promise<void> {
  const { client, clock, objects, reports } = deps;
  const isLeaving = hypervisor.metadata.deletionTimestamp !== undefined;
  const inUse = isLeaving ? inUseOf(hypervisor, deps) : undefined;
  const status = hypervisorStatusOf(hypervisor, { ...view, inUse }, clock.nowMs());
  const written = await writeStatus<Hypervisor>(client.of(hypervisorKind), hypervisor, status);
  reports.became(objects.note(written), hypervisor);
}

function tickMsOf({ spec }: Hypervisor, { tickMs }: HypervisorDeps): number {
  return tickMs ?? spec.limits.pollSeconds * 1000;
}
