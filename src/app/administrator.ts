import type { ApiServer } from "../apiserver/index.ts";
import { kubeconfigOf } from "../apiserver/index.ts";
import type { Client } from "../client/index.ts";
import type { Random } from "../kernel/random.ts";
import type { DataFolder } from "./data-folder.ts";
import { readIfPresent, writePrivately } from "./files.ts";
import { readConnection } from "./installation.ts";
import { renewUser } from "./users.ts";

const administrator = "admin";

/**
 * Sees to it that the folder's kubeconfig lets its owner in: the token in it is known, its server
 * is where this process listens. A lost or foreign file is made anew, with a new token; the
 * administrator's old token is worth nothing from then on.
 */
export async function prepareKubeconfig(options: {
  readonly folder: DataFolder;
  readonly server: ApiServer;
  readonly client: Client;
  readonly url: string;
  readonly authority: string;
  readonly random: Random;
}): Promise<void> {
  const { folder, server, client, random } = options;
  const present = readIfPresent(folder.kubeconfig);
  const kept = present === undefined ? undefined : readConnection(present)?.token;
  const isGood = kept !== undefined && server.knows({ authorization: `Bearer ${kept}` });
  const user = { name: administrator, role: "admin" } as const;
  const token = isGood ? kept : await renewUser(client, user, random);
  const wanted = kubeconfigOf({
    server: options.url,
    ca: options.authority,
    token,
    name: administrator,
  });
  if (wanted !== present) writePrivately(folder.kubeconfig, wanted);
}
