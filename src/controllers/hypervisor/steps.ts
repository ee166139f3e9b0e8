import { secretResource } from "../../api/builtin/index.ts";
import { finalizers, hypervisorReasons } from "../../api/index.ts";
import type { Hypervisor } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { ApiError } from "../../kernel/status.ts";
import { addFinalizer, removeFinalizer } from "../../runtime/index.ts";
import type { Credentials } from "./connections.ts";
import type { Trouble } from "./plan.ts";

/** A Secret as it was read, with what it holds. */
export interface SecretView {
  readonly key: string;
  readonly resourceVersion: string;
  readonly credentials: Credentials;
}

/** Reads a Secret of a Hypervisor and holds it fast; undefined where none is named. */
export async function readSecret(
  client: Client,
  { metadata, spec }: Hypervisor,
  use: "credentials" | "unlockCredentials" = "credentials",
): Promise<SecretView | Trouble | undefined> {
  const ref = spec[use]?.secretRef;
  if (ref === undefined) return undefined;
  const secrets = client.of(secretResource);
  try {
    const read = await secrets.get(ref);
    const secret =
      read.metadata.deletionTimestamp === undefined && metadata.deletionTimestamp === undefined
        ? await addFinalizer(secrets, read, finalizers.inUse)
        : read;
    const { resourceVersion = "" } = secret.metadata;
    const credentials = decoded(secret["data"]);
    return { key: `${ref.namespace}/${ref.name}`, resourceVersion, credentials };
  } catch (error) {
    return troubleOf(error, ref);
  }
}

type SecretRef = { readonly namespace: string; readonly name: string };

function troubleOf(error: unknown, ref: SecretRef): Trouble {
  if (error instanceof ApiError && error.code === 404) return noSecret(ref);
  if (error instanceof ApiError && error.code === 403) return forbiddenSecret(ref, error);
  throw error;
}

/** Lets go of a Secret that a Hypervisor no longer uses. */
export async function freeSecret(client: Client, key: string): Promise<void> {
  const [namespace = "", name = ""] = key.split("/");
  const secrets = client.of(secretResource);
  try {
    await removeFinalizer(secrets, await secrets.get({ namespace, name }), finalizers.inUse);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
  }
}

function decoded(data: unknown): Credentials {
  if (!isJsonObject(data)) return {};
  const texts: [string, string][] = [];
  for (const [name, value] of Object.entries(data)) {
    if (typeof value === "string") texts.push([name, Buffer.from(value, "base64").toString()]);
  }
  return Object.fromEntries(texts);
}

function noSecret({ namespace, name }: SecretRef): Trouble {
  return {
    reason: hypervisorReasons.CredentialsMissing,
    failure: {
      category: "DependencyNotReady",
      message: `There is no Secret ${namespace}/${name}.`,
      remedy: "Create it, or name another in spec.credentials. Berth goes on by itself.",
    },
  };
}

/** On a cluster of Kubernetes the controllers may do only what their account was given. */
function forbiddenSecret({ namespace, name }: SecretRef, { message }: ApiError): Trouble {
  return {
    reason: hypervisorReasons.CredentialsMissing,
    failure: {
      category: "DependencyNotReady",
      message: `The controllers may not use the Secret ${namespace}/${name}: ${message}`,
      remedy:
        "Let their account get and patch Secrets of that namespace, or put the Secret into " +
        "berth-system. Berth goes on by itself.",
    },
  };
}
