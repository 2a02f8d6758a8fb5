/** Whether every database can store the text: PostgreSQL refuses NUL and halves of surrogate pairs. */
export function isStorable(text: string): boolean {
  return !/[\0\ud800-\udfff]/u.test(text)
}

/**
 * Returns a label (title, tag) as every store keeps it: without NUL, and with U+FFFD for halves of surrogate
 * pairs. Labels may come from a model, so they are cleaned and not refused.
 */
export function labelText(text: string): string {
  return isStorable(text) ? text : text.replaceAll('\0', '').replace(/[\ud800-\udfff]/gu, '\ufffd')
}
