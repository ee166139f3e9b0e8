import { isJsonObject } from "../../kernel/json.ts";
import { compileJsonPath } from "../../kernel/json-path.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { usageError } from "../command.ts";

/** What `wait --for` waits for. */
export interface Expectation {
  /** For people: "condition Ready=True". */
  readonly shown: string;
  /** What is printed of an object that has it. */
  readonly done: string;
  /** Whether an object that is not there can never have it. */
  readonly needsObject: boolean;
  isMet(object: KubeObject | undefined): boolean;
}

export function readExpectation(text: string | undefined): Expectation {
  const [form, rest] = splitOnce(text ?? "");
  switch (form.toLowerCase()) {
    case "delete":
      return {
        shown: "deletion",
        done: "condition met",
        needsObject: false,
        isMet: (object) => object === undefined,
      };
    case "create":
      return {
        shown: "creation",
        done: "condition met",
        needsObject: false,
        isMet: (object) => object !== undefined,
      };
    case "condition":
      return conditionExpectation(rest);
    case "jsonpath":
      return pathExpectation(rest);
    default:
      throw usageError(
        `--for must be condition=TYPE, jsonpath='{PATH}'=VALUE, create or delete, not "${text ?? ""}"`,
      );
  }
}

function conditionExpectation(text: string): Expectation {
  const [type, asked] = splitOnce(text);
  if (type === "") throw usageError("--for=condition= needs the condition's type, such as Ready");
  const status = asked === "" ? "True" : asked;
  return {
    shown: `condition ${type}=${status}`,
    done: "condition met",
    needsObject: true,
    isMet: (object) => {
      return conditionsOf(object).some((condition) => {
        return (
          equalsLoosely(condition["type"], type) &&
          equalsLoosely(condition["status"], status) &&
          isCurrent(object, condition["observedGeneration"])
        );
      });
    },
  };
}

/** A condition of an earlier generation says nothing about what is declared now. */
function isCurrent(object: KubeObject | undefined, observed: unknown): boolean {
  const generation = object?.metadata.generation;
  if (typeof observed !== "number" || generation === undefined) return true;
  return observed >= generation;
}

function pathExpectation(text: string): Expectation {
  const found = /^(\{.*\}|[^=]*)(?:=(.*))?$/s.exec(text);
  const path = found?.[1] ?? "";
  if (path === "") throw usageError("--for=jsonpath= needs a path such as '{.status.powerState}'");
  const compiled = compileJsonPath(
    path.startsWith("{") || path.startsWith(".") ? path : `.${path}`,
  );
  const value = found?.[2];
  return {
    shown: `jsonpath ${text}`,
    done: "condition met",
    needsObject: true,
    isMet: (object) => {
      const first = compiled.first(object);
      if (first === undefined) return false;
      return value === undefined || (isScalar(first) && String(first) === value);
    },
  };
}

export function conditionsOf(object: KubeObject | undefined): Record<string, unknown>[] {
  const status: unknown = object?.["status"];
  const conditions = isJsonObject(status) ? status["conditions"] : undefined;
  return Array.isArray(conditions) ? conditions.filter(isJsonObject) : [];
}

function equalsLoosely(value: unknown, text: string): boolean {
  return typeof value === "string" && value.toLowerCase() === text.toLowerCase();
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function splitOnce(text: string): [string, string] {
  const at = text.indexOf("=");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
