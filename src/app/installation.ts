import {
  type Client,
  type Connection,
  createClient,
  createHttpsTransport,
  KubeconfigError,
  loadKubeconfig,
} from "../client/index.ts";
import { dataFolder } from "./data-folder.ts";
import { readIfPresent } from "./files.ts";
import { systemClock } from "./system.ts";

/** A running installation, reached as its administrator through the data folder's kubeconfig. */
export interface Installation {
  readonly client: Client;
  readonly url: string;
  /** The certificate of its authority, PEM. */
  readonly authority: string;
  close(): void;
}

/** Throws where there is no installation; whether it runs shows at the first call. */
export function connectInstallation(data: string): Installation {
  const path = dataFolder(data).kubeconfig;
  const text = readIfPresent(path);
  if (text === undefined) {
    throw new Error(`there is no ${path}: start berth up first, or name its folder by --data DIR`);
  }
  const connection = loadKubeconfig(text);
  const transport = createHttpsTransport(connection);
  return {
    client: createClient({ transport: transport.send, clock: systemClock }),
    url: connection.server,
    authority: connection.ca ?? "",
    close: () => transport.close(),
  };
}

/** What a kubeconfig says, or undefined if it is none: somebody else's file, or half of one. */
export function readConnection(text: string): Connection | undefined {
  try {
    return loadKubeconfig(text);
  } catch (error) {
    if (!(error instanceof KubeconfigError)) throw error;
    return undefined;
  }
}
