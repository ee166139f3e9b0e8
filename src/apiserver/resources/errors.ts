import type { Resource } from "../../api/resource.ts";
import { ApiError, forbidden, type FieldError, type Subject } from "../../kernel/status.ts";
import { StoreError } from "../../store/store.ts";

/** What an error about an object of this kind speaks of. */
export function subjectOf(resource: Resource, name?: string): Subject {
  const { group, plural } = resource;
  return name === undefined ? { group, resource: plural } : { group, resource: plural, name };
}

/** Turns what the store refused with into the client's answer; all else stays what it is. */
export function storeRefusal(error: unknown): unknown {
  if (!(error instanceof StoreError)) return error;
  switch (error.code) {
    case "StorageFull": {
      const message =
        "the server's disk is full: nothing was changed; free some space and try again";
      return new ApiError(507, "InsufficientStorage", message);
    }
    case "Overloaded":
      return tooManyRequests("too many writes are waiting for the disk, please try again later");
    case "Closed":
      return new ApiError(503, "ServiceUnavailable", "the server is shutting down", {
        retryAfterSeconds: 1,
      });
    default:
      return internalError(error.message);
  }
}

export function tooManyRequests(message: string): ApiError {
  return new ApiError(429, "TooManyRequests", message, { retryAfterSeconds: 1 });
}

export function internalError(why: string): ApiError {
  const details = { causes: [{ message: why }] };
  return new ApiError(500, "InternalError", `Internal error occurred: ${why}`, details);
}

/** A client that knows a newer revision than the server: it talked to another one before. */
export function tooLargeResourceVersion(asked: number, current: number): ApiError {
  const message = `Timeout: Too large resource version: ${asked}, current: ${current}`;
  return new ApiError(504, "Timeout", message, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}

export function namespaceTerminating(subject: Subject, namespace: string): ApiError {
  const why = `unable to create new content in namespace ${namespace}`;
  const { code, reason, message, details } = forbidden(
    subject,
    `${why} because it is being terminated`,
  );
  return new ApiError(code, reason, message, {
    ...details,
    causes: [
      {
        reason: "NamespaceTerminating",
        message: `namespace ${namespace} is being terminated`,
        field: "metadata.namespace",
      },
    ],
  });
}

export function invalidValue(field: string, value: string, detail: string): FieldError {
  return { type: "FieldValueInvalid", field, value, detail };
}

export function forbiddenValue(field: string, detail: string): FieldError {
  return { type: "FieldValueForbidden", field, detail };
}

export function unsupportedValue(
  field: string,
  value: string,
  supported: readonly string[],
): FieldError {
  const names = supported.map((name) => JSON.stringify(name)).join(", ");
  return {
    type: "FieldValueNotSupported",
    field,
    value,
    detail: `supported values: ${names}`,
  };
}
