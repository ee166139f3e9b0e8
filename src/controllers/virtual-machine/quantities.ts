import { parseQuantity, quantityToNumber } from "../../kernel/quantity.ts";

/** Bytes of a quantity that admission has checked. */
export function bytesOf(quantity: string | number): number {
  return Math.ceil(numberOf(quantity));
}

export function numberOf(quantity: string | number): number {
  const parsed = parseQuantity(String(quantity));
  return parsed === undefined ? 0 : quantityToNumber(parsed);
}
