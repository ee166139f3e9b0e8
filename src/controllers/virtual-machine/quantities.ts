import {
  formatQuantity,
  parseQuantity,
  quantityOf,
  quantityToNumber,
} from "../../kernel/quantity.ts";

/** Bytes of a quantity that admission has checked. */
export function bytesOf(quantity: string | number): number {
  return Math.ceil(numberOf(quantity));
}

export function numberOf(quantity: string | number): number {
  const parsed = parseQuantity(String(quantity));
  return parsed === undefined ? 0 : quantityToNumber(parsed);
}

/** Bytes as a person would declare them, exact: "20Gi", "1536Mi". */
export function sizeText(bytes: number): string {
  return formatQuantity({ ...quantityOf(BigInt(bytes)), format: "BinarySI" });
}
