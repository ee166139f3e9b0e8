import type * as X509 from "@peculiar/x509";

/**
 * The library that writes certificates: loaded when one is to be made, which is at the first start
 * and once a year, so that every other start is spared its tenth of a second.
 *
 * It finds its algorithms through tsyringe, which refuses to load where nobody provides decorator
 * metadata. None of the classes involved has constructor parameters, which is all that it would
 * look up, so "there is none" is the true answer and no polyfill is needed.
 */
export async function loadX509(): Promise<typeof X509> {
  const noMetadata = (): undefined => undefined;
  for (const name of ["getMetadata", "getOwnMetadata", "defineMetadata"]) {
    if (!Reflect.has(Reflect, name)) {
      Reflect.defineProperty(Reflect, name, { value: noMetadata, configurable: true });
    }
  }
  return import("@peculiar/x509");
}
