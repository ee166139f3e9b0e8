import { usageError } from "./command.ts";

/** The value of --port, or of another option that takes one. */
export function readPort(text: string | undefined, option = "port"): number {
  const port = Number(text);
  if (text !== undefined && text !== "" && Number.isInteger(port) && port >= 0 && port <= 65_535) {
    return port;
  }
  throw usageError(`--${option} must be a number from 0 to 65535, not "${text}"`);
}
