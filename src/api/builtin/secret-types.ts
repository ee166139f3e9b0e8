import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { FieldError } from "../../kernel/status.ts";
import { dataEntries } from "./data-keys.ts";
import { invalidField, requiredField } from "./native.ts";

/** What each type of Secret demands of its data. Types that are not named here demand nothing. */
const demands: Readonly<Record<string, (data: Map<string, string>) => FieldError[]>> = {
  "kubernetes.io/tls": (data) => missing(data, ["tls.crt", "tls.key"]),
  "kubernetes.io/dockerconfigjson": (data) => jsonValue(data, ".dockerconfigjson"),
  "kubernetes.io/dockercfg": (data) => jsonValue(data, ".dockercfg"),
  "kubernetes.io/basic-auth": (data) => {
    return data.has("username") || data.has("password")
      ? []
      : missing(data, ["username", "password"]);
  },
  "kubernetes.io/ssh-auth": (data) => {
    return data.get("ssh-privatekey") ? [] : [requiredField("data[ssh-privatekey]")];
  },
};

const accountAnnotation = "kubernetes.io/service-account.name";

export function secretTypeErrors(object: KubeObject): FieldError[] {
  const type = object.type;
  if (typeof type !== "string") return [];
  if (type === "kubernetes.io/service-account-token") return accountErrors(object);
  if (!Object.hasOwn(demands, type)) return [];
  return demands[type]?.(new Map(dataEntries(object, "data"))) ?? [];
}

function accountErrors(object: KubeObject): FieldError[] {
  if (object.metadata.annotations?.[accountAnnotation]) return [];
  return [requiredField(`metadata.annotations[${accountAnnotation}]`)];
}

function missing(data: Map<string, string>, keys: readonly string[]): FieldError[] {
  return keys.filter((key) => !data.has(key)).map((key) => requiredField(`data[${key}]`));
}

function jsonValue(data: Map<string, string>, key: string): FieldError[] {
  const value = data.get(key);
  if (value === undefined) return [requiredField(`data[${key}]`)];
  if (isJsonText(Buffer.from(value, "base64").toString("utf8"))) return [];
  const hidden = "<secret contents redacted>";
  return [invalidField(`data[${key}]`, hidden, "must be a JSON object")];
}

function isJsonText(text: string): boolean {
  try {
    return isJsonObject(JSON.parse(text));
  } catch (error) {
    // A parse error quotes what it read, and that is the secret itself: it must go no further.
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
