/** A failure in Proxmox' own words: the reason phrase of a reply, or the end of a task. */
export class PveError extends Error {
  readonly status: number;
  /** What was wrong, by parameter. */
  readonly errors: Readonly<Record<string, string>> | undefined;

  constructor(message: string, status = 500, errors?: Readonly<Record<string, string>>) {
    super(message);
    this.status = status;
    this.errors = errors;
  }
}

export function parameterError(errors: Readonly<Record<string, string>>): PveError {
  return new PveError("Parameter verification failed.", 400, errors);
}

export function forbidden(message: string): PveError {
  return new PveError(message, 403);
}

/** How an error reads as the end of a task: on one line, raised ones with their code in front. */
export function taskTextOf(error: unknown): string {
  if (!(error instanceof PveError)) return messageOf(error);
  const details = Object.entries(error.errors ?? {}).map(([name, text]) => `${name}: ${text}`);
  const code = error.status === 500 ? "" : `${error.status} `;
  return [`${code}${error.message}`, ...details].join(" ").replaceAll("\n", " ").trimEnd();
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The same failure, with what was being done in front of it. */
export function prefixed(prefix: string, error: unknown): PveError {
  return new PveError(`${prefix}${messageOf(error)}`);
}
