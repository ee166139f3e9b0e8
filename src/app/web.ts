import { lookup as resolveName, type LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { get as httpGet, type IncomingMessage } from "node:http";
import { get as httpsGet } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { notAllowed, type Web, type WebFile } from "../controllers/index.ts";
import { answered, failed, type Answer, type Failure } from "../hypervisor/index.ts";

const redirectsMax = 5;
const idleMs = 60_000;

type MayUse = (address: string) => boolean;

/** The web as this machine sees it. */
export function createWeb(): Web {
  return {
    resolve: async (host) => {
      try {
        const found = await lookup(host, { all: true });
        return answered(found.map(({ address }) => address));
      } catch (error) {
        return failed(unreachable(host, error));
      }
    },
    open: (url, mayUse) => openFile(url, mayUse, redirectsMax),
  };
}

async function openFile(url: string, mayUse: MayUse, left: number): Promise<Answer<WebFile>> {
  const requested = await request(url, mayUse);
  if (!requested.ok) return requested;
  const response = requested.value;
  const { statusCode = 0, headers } = response;
  const sizeBytes = Number(headers["content-length"]);
  if (statusCode === 200 && Number.isSafeInteger(sizeBytes)) {
    return answered({ sizeBytes, chunks: response, close: () => void response.destroy() });
  }
  response.destroy();
  const isMoved = statusCode >= 300 && statusCode < 400;
  if (isMoved && headers.location !== undefined) {
    const next = redirection(url, headers.location, left);
    return next.ok ? openFile(next.value, mayUse, left - 1) : next;
  }
  const why = statusCode === 200 ? "does not say how large it is" : `answers ${statusCode}`;
  return failed(refusedBy(url, `the server ${why}`));
}

/** Where it leads, if that is no less safe than where it came from. */
function redirection(url: string, location: string, left: number): Answer<string> {
  const { href, protocol } = new URL(location, url);
  if (left === 0) return failed(refusedBy(url, "it leads from one place to another for ever"));
  const isWorse = url.startsWith("https:") && protocol !== "https:";
  if (isWorse || !/^https?:$/.test(protocol)) {
    return failed(refusedBy(url, `it leads to ${protocol}`));
  }
  return answered(href);
}

/** The address is checked in the moment of the connection, so that no second answer can differ. */
function request(url: string, mayUse: MayUse): Promise<Answer<IncomingMessage>> {
  const { hostname } = new URL(url);
  const literal = hostname.replaceAll(/^\[|\]$/g, "");
  if (isIP(literal) !== 0 && !mayUse(literal)) {
    return Promise.resolve(failed(notAllowed(literal, literal)));
  }
  return new Promise((resolve) => {
    let refusal: Failure | undefined;
    const get = url.startsWith("https:") ? httpsGet : httpGet;
    const checked = checkedLookup(mayUse, (host, address) => {
      refusal = notAllowed(host, address);
    });
    const outgoing = get(url, { lookup: checked, timeout: idleMs }, (response) => {
      resolve(answered(response));
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`no word for ${idleMs / 1000} s`)));
    outgoing.on("error", (error) => resolve(failed(refusal ?? unreachable(url, error))));
  });
}

function checkedLookup(
  mayUse: MayUse,
  refuse: (host: string, address: string) => void,
): LookupFunction {
  return (host, options, callback) => {
    resolveName(host, { ...options, all: true }, (error, found: LookupAddress[]) => {
      const [first] = found ?? [];
      if (error !== null || first === undefined) return callback(error, []);
      const bad = found.find(({ address }) => !mayUse(address));
      if (bad !== undefined) {
        refuse(host, bad.address);
        return callback(new Error(`${bad.address} is not allowed`), []);
      }
      if (options.all === true) return callback(null, found);
      return callback(null, first.address, first.family);
    });
  };
}

function unreachable(what: string, error: unknown): Failure {
  return {
    category: "NetworkError",
    message: `${what} cannot be reached from here.`,
    cause: error instanceof Error ? error.message : String(error),
  };
}

function refusedBy(url: string, why: string): Failure {
  return {
    category: "ImageNotFound",
    message: `The file at ${url} cannot be fetched: ${why}.`,
    remedy: "Correct the URL of the VMImage. Berth goes on by itself.",
  };
}
