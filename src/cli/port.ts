import { usageError } from "./command.ts";

/** The value of --port. */
export function readPort(text: string | undefined): number {
  const port = Number(text);
  if (text !== undefined && text !== "" && Number.isInteger(port) && port >= 0 && port <= 65_535) {
    return port;
  }
  throw usageError(`--port must be a number from 0 to 65535, not "${text}"`);
}
