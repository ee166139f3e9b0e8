/**
 * A value of an object whose schema is not known here, as text for the screen; nothing for one that
 * is absent. What could steer a terminal is shown instead of sent: objects are written by others.
 */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return escaped(typeof value === "string" ? value : JSON.stringify(value));
}

/** All control characters but tabs and line breaks. */
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

function escaped(text: string): string {
  return text.replaceAll(controls, (letter) => {
    return `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
