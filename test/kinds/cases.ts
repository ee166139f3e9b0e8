import type { Case } from "./case.ts";
import { ledgerCases } from "./ledger-cases.ts";
import { otherCases } from "./other-cases.ts";
import { vmCases } from "./virtual-machine-cases.ts";

/** What people write, right and wrong. Every rule of every kind is broken here at least once. */
export const cases: readonly Case[] = [...vmCases, ...ledgerCases, ...otherCases];
