/**
 * The body of every refused request: Kubernetes' `Status`. Clients read `reason`, people `message`.
 */
export interface Status {
  kind: "Status";
  apiVersion: "v1";
  metadata: Record<string, never>;
  status: "Failure" | "Success";
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code: number;
}

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

/** A refusal: the caller's answer, not our fault. Everything else that is thrown is a 500. */
export class ApiError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: StatusDetails | undefined;

  // oxlint-disable-next-line max-params -- as a Status reads: every call has the first three
  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  toStatus(): Status {
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: this.message,
      ...(this.reason ? { reason: this.reason } : {}),
      ...(this.details ? { details: this.details } : {}),
      code: this.code,
    };
  }
}

/** What an error speaks of: a kind of object, and where known which one. */
export interface Subject {
  group: string;
  /** The plural, as in URLs: "virtualmachines". */
  resource: string;
  name?: string;
}

/** "virtualmachines.berth.dev", or "secrets" for the core group. */
export function qualifiedResource(subject: Subject): string {
  return subject.group ? `${subject.resource}.${subject.group}` : subject.resource;
}

function detailsOf(subject: Subject): StatusDetails {
  return {
    ...(subject.name ? { name: subject.name } : {}),
    ...(subject.group ? { group: subject.group } : {}),
    kind: subject.resource,
  };
}

function quoted(subject: Subject): string {
  return `${qualifiedResource(subject)} "${subject.name ?? ""}"`;
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, "BadRequest", message);
}

export function unauthorized(message = "Unauthorized"): ApiError {
  return new ApiError(401, "Unauthorized", message);
}

export function forbidden(subject: Subject, why: string): ApiError {
  return new ApiError(
    403,
    "Forbidden",
    `${quoted(subject)} is forbidden: ${why}`,
    detailsOf(subject),
  );
}

export function notFound(subject: Subject): ApiError {
  return new ApiError(404, "NotFound", `${quoted(subject)} not found`, detailsOf(subject));
}

/** For a path that no route serves. */
export function pathNotFound(): ApiError {
  return new ApiError(404, "NotFound", "the server could not find the requested resource", {});
}

export function methodNotAllowed(): ApiError {
  const message = "the server does not allow this method on the requested resource";
  return new ApiError(405, "MethodNotAllowed", message, {});
}

export function alreadyExists(subject: Subject): ApiError {
  return new ApiError(
    409,
    "AlreadyExists",
    `${quoted(subject)} already exists`,
    detailsOf(subject),
  );
}

export function conflict(subject: Subject, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${quoted(subject)}: ${why}`;
  return new ApiError(409, "Conflict", message, detailsOf(subject));
}

/** The stale-write conflict, in the words that client libraries and people know. */
export function modified(subject: Subject): ApiError {
  const why =
    "the object has been modified; please apply your changes to the latest version and try again";
  return conflict(subject, why);
}

export function expired(message: string): ApiError {
  return new ApiError(410, "Expired", message);
}

export function tooLarge(message: string): ApiError {
  return new ApiError(413, "RequestEntityTooLarge", message);
}

export function unsupportedMediaType(message: string): ApiError {
  return new ApiError(415, "UnsupportedMediaType", message);
}

/** One thing wrong with an object, at a field. */
export interface FieldError {
  /** As in Kubernetes: "Invalid value", "Required value", "Unsupported value" and so on. */
  type: FieldErrorType;
  /** "spec.disks[0].size". */
  field: string;
  /** The value as it is shown: already JSON. Absent where Kubernetes shows none. */
  value?: string;
  detail: string;
}

export type FieldErrorType =
  | "FieldValueInvalid"
  | "FieldValueRequired"
  | "FieldValueNotSupported"
  | "FieldValueDuplicate"
  | "FieldValueForbidden"
  | "FieldValueTooLong"
  | "FieldValueTooMany"
  | "FieldValueTypeInvalid"
  | "FieldValueNotFound";

const fieldErrorWords: Record<FieldErrorType, string> = {
  FieldValueInvalid: "Invalid value",
  FieldValueRequired: "Required value",
  FieldValueNotSupported: "Unsupported value",
  FieldValueDuplicate: "Duplicate value",
  FieldValueForbidden: "Forbidden",
  FieldValueTooLong: "Too long",
  FieldValueTooMany: "Too many",
  FieldValueTypeInvalid: "Invalid value",
  FieldValueNotFound: "Not found",
};

/** `Invalid value: "x": must be …`, without the field: the form of a Status cause. */
export function fieldErrorMessage(error: FieldError): string {
  const head = fieldErrorWords[error.type];
  const shown = error.value === undefined ? head : `${head}: ${error.value}`;
  return error.detail === "" ? shown : `${shown}: ${error.detail}`;
}

/** 422 with every field error, as kube-apiserver words it. */
export function invalid(
  subject: { group: string; kind: string; name: string },
  errors: readonly FieldError[],
): ApiError {
  const kind = subject.group ? `${subject.kind}.${subject.group}` : subject.kind;
  const texts = errors.map((error) => `${error.field}: ${fieldErrorMessage(error)}`);
  const joined = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  return new ApiError(422, "Invalid", `${kind} "${subject.name}" is invalid: ${joined}`, {
    name: subject.name,
    ...(subject.group ? { group: subject.group } : {}),
    kind: subject.kind,
    causes: errors.map((error) => ({
      reason: error.type,
      message: fieldErrorMessage(error),
      field: error.field,
    })),
  });
}
