import type { AddressInfo } from "node:net";
import {
  createAuthority,
  fingerprintOf,
  issueServerCertificate,
  type KeyPair,
} from "../../apiserver/index.ts";
import type { ClusterInventory } from "../../drivers/proxmox/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { fetchUrl } from "./fetch-url.ts";
import { readDataFile } from "./kept/data-file.ts";
import { keeperOf } from "./kept/keeper.ts";
import { ProxmoxModel } from "./model.ts";
import type { Release } from "./release.ts";
import { createSimulatorServer } from "./server.ts";
import { twinOf } from "./snapshot.ts";
import type { ClusterState } from "./state.ts";
import type { Timing } from "./timing.ts";
import { smallCluster, tokenName, tokenUser } from "./world.ts";

export interface SimulatorOptions {
  /** 0 lets the system choose. */
  readonly port: number;
  readonly version: Release;
  readonly nodes?: readonly string[];
  /** The cluster to be a twin of, in place of a small one of its own. */
  readonly inventory?: ClusterInventory;
  readonly clock: Clock;
  readonly random: Random;
  /** Where its state is kept; without it, all is forgotten at the end. */
  readonly dataFile?: string;
  /** Serves the test hooks under /_sim/, to loopback only. */
  readonly hooks?: boolean;
  readonly timing?: Partial<Timing>;
}

/** A running simulator, and what a client needs to use it. */
export interface Simulator {
  readonly url: string;
  readonly tokenId: string;
  readonly tokenSecret: string;
  readonly user: string;
  readonly password: string;
  /** SHA-256 of the server's certificate. */
  readonly fingerprint: string;
  /** PEM of the cluster's root certificate. */
  readonly ca: string;
  readonly nodes: readonly string[];
  readonly model: () => ProxmoxModel;
  close(): Promise<void>;
}

/** What survives in the data file besides the cluster itself. */
interface Kept {
  readonly authority: KeyPair;
  readonly certificate: KeyPair;
  readonly password: string;
  readonly tokenSecret: string;
  readonly state: ClusterState;
}

const defaultNodes = ["pve1", "pve2", "pve3"];

/** Starts a simulated Proxmox VE cluster on loopback. */
export async function startProxmoxSimulator(options: SimulatorOptions): Promise<Simulator> {
  const kept = readKept(options.dataFile) ?? (await newKept(options));
  const { clock, random, timing } = options;
  const environment = {
    clock,
    random,
    fetch: fetchUrl,
    ...(timing === undefined ? {} : { timing }),
  };
  const holder = { model: ProxmoxModel.resume(kept.state, environment) };
  const keeper = keeperOf(options.dataFile, kept, () => holder.model.cluster);
  keeper.save();
  const server = createSimulatorServer({
    target: {
      model: () => holder.model,
      reset: (release) => {
        const state = newState({ ...options, version: release }, kept);
        holder.model = new ProxmoxModel({
          ...environment,
          state: bareCluster(state),
        });
      },
    },
    hooks: options.hooks ?? false,
    certificate: kept.certificate,
    ca: kept.authority.cert,
    beforeReply: () => keeper.saveChanges(),
    afterHook: () => keeper.save(),
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, "127.0.0.1", resolve);
  });
  return {
    url: `https://127.0.0.1:${portOf(server.address())}`,
    tokenId: `${tokenUser}!${tokenName}`,
    tokenSecret: kept.tokenSecret,
    user: "root@pam",
    password: kept.password,
    ca: kept.authority.cert,
    fingerprint: fingerprintOf(kept.certificate.cert),
    nodes: holder.model.cluster.state.nodes.map(({ name }) => name),
    model: () => holder.model,
    close: () => {
      keeper.save();
      keeper.close();
      server.closeAllConnections();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}

async function newKept(options: SimulatorOptions): Promise<Kept> {
  const { clock, random } = options;
  const authority = await createAuthority({ clock, random });
  const names = ["localhost", "127.0.0.1", ...nodeNames(options)];
  const certificate = await issueServerCertificate(authority, names, { clock, random });
  const password = random.uuid();
  const tokenSecret = random.uuid();
  const secrets = { authority, certificate, password, tokenSecret };
  return { ...secrets, state: newState(options, secrets) };
}

function newState(
  options: SimulatorOptions,
  { authority, password, tokenSecret }: Pick<Kept, "authority" | "password" | "tokenSecret">,
): ClusterState {
  const { version, clock, random, inventory } = options;
  const nodes = nodeNames(options);
  const rootFingerprint = fingerprintOf(authority.cert);
  const secrets = { password, tokenSecret, rootFingerprint };
  const small = smallCluster({ release: version, nodes, clock, random, ...secrets });
  return inventory === undefined ? small : twinOf(inventory, small);
}

function nodeNames({ inventory, nodes }: SimulatorOptions): readonly string[] {
  return inventory?.nodes.map(({ name }) => name) ?? nodes ?? defaultNodes;
}

/**
 * What test scenarios begin with: one empty storage, and only root@pam, with a token "t" that is
 * not separated and has the secret of Berth's. They bring all else themselves.
 */
function bareCluster(state: ClusterState): ClusterState {
  const secret = state.users.find(({ userid }) => userid === tokenUser)?.tokens[0]?.secret ?? "";
  const token = { tokenid: "t", secret, privsep: 0, expire: 0 };
  const roots = state.users.filter(({ userid }) => userid === "root@pam");
  return {
    ...state,
    storages: state.storages.filter(({ storage }) => storage === "local"),
    users: roots.map((user) => ({ ...user, tokens: [token] })),
    acl: [],
    volumes: {},
  };
}

function readKept(file: string | undefined): Kept | undefined {
  // cast: the file is what its keeper wrote.
  return file === undefined ? undefined : (readDataFile(file) as Kept | undefined);
}

function portOf(address: AddressInfo | string | null): number {
  return typeof address === "object" && address !== null ? address.port : 0;
}
