import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import {
  createAuthority,
  fingerprintOf,
  issueServerCertificate,
  type KeyPair,
} from "../../apiserver/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { fetchUrl } from "./fetch-url.ts";
import { ProxmoxModel } from "./model.ts";
import type { Release } from "./release.ts";
import { createSimulatorServer } from "./server.ts";
import type { ClusterState } from "./state.ts";
import type { Timing } from "./timing.ts";
import { smallCluster, tokenName, tokenUser } from "./world.ts";

export interface SimulatorOptions {
  /** 0 lets the system choose. */
  readonly port: number;
  readonly version: Release;
  readonly nodes?: readonly string[];
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
  const holder = { model: ProxmoxModel.load(JSON.stringify(kept.state), environment) };
  const save = keeper(options.dataFile, kept, () => holder.model.cluster.state);
  save();
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
    beforeReply: save,
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
      save();
      server.closeAllConnections();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}

async function newKept(options: SimulatorOptions): Promise<Kept> {
  const { clock, random } = options;
  const authority = await createAuthority({ clock, random });
  const names = ["localhost", "127.0.0.1", ...(options.nodes ?? defaultNodes)];
  const certificate = await issueServerCertificate(authority, names, { clock, random });
  const password = random.uuid();
  const tokenSecret = random.uuid();
  const secrets = { authority, certificate, password, tokenSecret };
  return { ...secrets, state: newState(options, secrets) };
}

function newState(
  { version, nodes, clock, random }: SimulatorOptions,
  { authority, password, tokenSecret }: Pick<Kept, "authority" | "password" | "tokenSecret">,
): ClusterState {
  const names = nodes ?? defaultNodes;
  const rootFingerprint = fingerprintOf(authority.cert);
  const secrets = { password, tokenSecret, rootFingerprint };
  return smallCluster({ release: version, nodes: names, clock, random, ...secrets });
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
  if (file === undefined || !existsSync(file)) return undefined;
  // cast: the file is what keeper() wrote.
  return JSON.parse(readFileSync(file, "utf8")) as Kept;
}

/** Writes the file whenever something changed: whole, beside, then renamed over the old one. */
function keeper(file: string | undefined, kept: Kept, state: () => ClusterState): () => void {
  if (file === undefined) return () => undefined;
  let last = "";
  return () => {
    const text = JSON.stringify({ ...kept, state: state() });
    if (text === last) return;
    last = text;
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  };
}

function portOf(address: AddressInfo | string | null): number {
  return typeof address === "object" && address !== null ? address.port : 0;
}
