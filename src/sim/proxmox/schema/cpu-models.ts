import type { Release } from "../release.ts";

const always =
  "486 athlon Broadwell Broadwell-IBRS Broadwell-noTSX Broadwell-noTSX-IBRS Cascadelake-Server " +
  "Cascadelake-Server-noTSX Conroe core2duo coreduo Cooperlake EPYC EPYC-IBPB EPYC-Milan EPYC-Rome " +
  "Haswell Haswell-IBRS Haswell-noTSX Haswell-noTSX-IBRS host Icelake-Client Icelake-Client-noTSX " +
  "Icelake-Server Icelake-Server-noTSX IvyBridge IvyBridge-IBRS KnightsMill kvm32 kvm64 max Nehalem " +
  "Nehalem-IBRS Opteron_G1 Opteron_G2 Opteron_G3 Opteron_G4 Opteron_G5 Penryn pentium pentium2 " +
  "pentium3 phenom qemu32 qemu64 SandyBridge SandyBridge-IBRS Skylake-Client Skylake-Client-IBRS " +
  "Skylake-Client-noTSX-IBRS Skylake-Server Skylake-Server-IBRS Skylake-Server-noTSX-IBRS Westmere " +
  "Westmere-IBRS";
const since84 =
  "x86-64-v2 x86-64-v2-AES x86-64-v3 x86-64-v4 EPYC-Genoa EPYC-Milan-v2 EPYC-Rome-v2 EPYC-v3 " +
  "EPYC-v4 GraniteRapids SapphireRapids SapphireRapids-v2 Cooperlake-v2";
const since92 = "EPYC-Turin ClearwaterForest SierraForest";

const models: Readonly<Record<Release, ReadonlySet<string>>> = {
  "7.4": new Set(always.split(" ")),
  "8.4": new Set(`${always} ${since84}`.split(" ")),
  "9.2": new Set(`${always} ${since84} ${since92}`.split(" ")),
};

/** Whether this release knows the CPU model by itself, without a custom definition. */
export function isCpuModel(name: string, release: Release): boolean {
  return models[release].has(name);
}

/** The models that this release knows by itself. */
export function cpuModels(release: Release): string[] {
  return [...models[release]];
}
