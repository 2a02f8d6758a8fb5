/**
 * Control characters (also the escape that begins terminal sequences), line separators, invisible characters, those
 * that turn the direction of text, and halves of surrogate pairs.
 */
const UNSAFE =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/gu

/**
 * Text from outside, made safe to show to a person. A model, a tool or a web page may send characters that move a
 * terminal's cursor, hide words or turn their order, so that a person approves something else than what runs. Such
 * characters are written as `\u{…}`; line breaks and tabs stay, unless `isLine` asks for one line.
 */
export function displayText(text: string, options: { readonly isLine?: boolean } = {}): string {
  return text.replace(UNSAFE, (character) => {
    if (!options.isLine && (character === '\n' || character === '\t')) return character
    return `\\u{${character.codePointAt(0)!.toString(16)}}`
  })
}
