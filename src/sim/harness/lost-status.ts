import type { ObjectChange } from "./records.ts";

interface Telling {
  readonly status?: object | undefined;
}

/** Berth never writes an empty status: somebody took it away. */
export function isStatusLost({ before, after }: ObjectChange<Telling>): boolean {
  const { status = {} } = before ?? {};
  return Object.keys(status).length > 0 && after !== undefined && isEmpty(after);
}

function isEmpty({ status = {} }: Telling): boolean {
  return Object.keys(status).length === 0;
}
