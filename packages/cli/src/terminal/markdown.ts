import type { Output } from './output.ts'

/** A part of a line with one style. */
interface Span {
  readonly text: string
  readonly style?: 'bold' | 'cyan' | 'dim'
}

/** Characters that take two columns of a terminal: East Asian scripts and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u
/** Characters that are drawn over the character before them and take no column of their own. */
const COMBINING = /[\p{Mn}\p{Me}\u200d]/u

/** Returns how many columns a text takes in a terminal. */
function widthOf(text: string): number {
  let width = 0
  for (const character of text)
    width += COMBINING.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return width
}

/** The beginning of a line that may still become a heading, list or other block when more of the line arrives. */
const MAYBE_BLOCK = /^\s*(?:[#>*+\-_~`|=]*|\d{1,9}[.)]?)\s?$/
const FENCE = /^\s{0,3}(```+|~~~+)/
const RULE = /^([-*_])\1{2,}$/
const BLOCK = /^(\s*)(?:(#{1,6})\s+|([-*+])\s+|(\d{1,9}[.)])\s+|(>)\s?)/

/**
 * Writes Markdown to a terminal while it arrives: each word is written when it is complete, and lines
 * are wrapped at the width of the terminal. Headings, lists, quotes, code and emphasis have a simple
 * form. Everything else stays as it was written, so that nothing a model says is hidden.
 */
export class MarkdownWriter {
  readonly #output: Pick<Output, 'piece' | 'paint'>
  readonly #width: number
  /** The text of the current line that is not written yet. */
  #rest = ''
  #place: 'start' | 'text' | 'table' = 'start'
  #isCode = false
  #column = 0
  #indent = 0
  #style: Span['style']
  #space = false

  constructor(output: Pick<Output, 'piece' | 'paint'>, columns: number) {
    this.#output = output
    this.#width = Math.max(columns - 1, 20)
  }

  push(text: string): void {
    const lines = text.replaceAll('\r', '').split('\n')
    lines.forEach((part, index) => {
      this.#rest += part
      const isWhole = index < lines.length - 1
      this.#advance(isWhole)
      if (isWhole) this.#endLine()
    })
  }

  /** Writes the text that was held back because more of its line might have followed. */
  end(): void {
    if (this.#rest !== '') this.#advance(true)
    this.#reset()
    this.#isCode = false
  }

  #advance(isWhole: boolean): void {
    if (this.#isCode || (this.#place === 'start' && FENCE.test(this.#rest))) {
      if (isWhole) this.#codeLine()
      return
    }
    if (this.#place === 'start' && !this.#startBlock(isWhole)) return
    if (this.#place === 'table') {
      if (isWhole) this.#write(this.#take(this.#rest.length))
    } else this.#inline(isWhole)
  }

  #endLine(): void {
    this.#output.piece('\n')
    this.#reset()
  }

  #reset(): void {
    this.#rest = ''
    this.#place = 'start'
    this.#column = this.#indent = 0
    this.#style = undefined
    this.#space = false
  }

  #take(length: number): string {
    const taken = this.#rest.slice(0, length)
    this.#rest = this.#rest.slice(length)
    return taken
  }

  #codeLine(): void {
    const isFence = FENCE.test(this.#rest)
    const text = this.#take(this.#rest.length)
    this.#write(this.#output.paint(isFence ? 'dim' : 'cyan', isFence ? text : `  ${text}`))
    if (isFence) this.#isCode = !this.#isCode
  }

  /** Recognises which block (heading, list …) a line begins; returns false if more of the line is needed for that. */
  #startBlock(isWhole: boolean): boolean {
    if (!isWhole && MAYBE_BLOCK.test(this.#rest)) return false
    if (isWhole && RULE.test(this.#rest.replaceAll(' ', ''))) {
      this.#rest = ''
      this.#write(this.#output.paint('dim', '─'.repeat(Math.min(this.#width, 40))))
    }
    this.#place = this.#rest.trimStart().startsWith('|') ? 'table' : 'text'
    const [all, space = '', heading, bullet, number, quote] = BLOCK.exec(this.#rest) ?? []
    if (all === undefined) return true
    this.#take(all.length)
    if (heading !== undefined) this.#style = 'bold'
    const mark = bullet === undefined ? (number ?? (quote === undefined ? '' : '│')) : '•'
    const before = mark === '' ? space : `${space}${mark} `
    this.#write(before)
    this.#column = this.#indent = widthOf(before)
    return true
  }

  /** Writes the spans (plain, bold, code …) of the line that have arrived completely. */
  #inline(isWhole: boolean): void {
    for (;;) {
      const span = this.#nextSpan(isWhole)
      if (!span) return
      this.#words(span)
    }
  }

  /** Takes the next span of the line; undefined if the span may continue in text that has not arrived yet. */
  #nextSpan(isWhole: boolean): Span | undefined {
    const text = this.#rest
    if (text === '') return undefined
    const [mark] = /^(?:\*\*|__|`+|\*|_)/.exec(text) ?? []
    if (mark === undefined) {
      const plain = plainPart(text)
      const isEnd = plain.length === text.length && !isWhole
      const length = isEnd ? plain.lastIndexOf(' ') + 1 : plain.length
      return length === 0 ? undefined : { text: this.#take(length), style: this.#style }
    }
    const close = text.indexOf(mark, mark.length)
    const inner = close < 0 ? '' : text.slice(mark.length, close)
    if (close < 0 && !isWhole && text.length < 2000) return undefined
    // A mark next to a space is no emphasis, e.g. in `2 * 3 * 4`.
    if (close < 0 || inner === '' || inner.trim() !== inner)
      return { text: this.#take(mark.length), style: this.#style }
    this.#take(close + mark.length)
    const style = mark.startsWith('`') ? 'cyan' : 'bold'
    return { text: inner, style }
  }

  #words({ text, style }: Span): void {
    for (const [word] of text.matchAll(/\s+|\S+/g)) {
      if (/^\s/.test(word)) {
        this.#space = true
        continue
      }
      const width = widthOf(word)
      const isFirst = this.#column === this.#indent
      if (!isFirst && this.#space && this.#column + 1 + width > this.#width) {
        this.#output.piece(`\n${' '.repeat(this.#indent)}`)
        this.#column = this.#indent
      } else if (this.#space && !isFirst) {
        this.#output.piece(' ')
        this.#column++
      }
      this.#space = false
      this.#write(style === undefined ? word : this.#output.paint(style, word))
      this.#column += width
    }
  }

  #write(text: string): void {
    if (text !== '') this.#output.piece(text)
  }
}

const LETTER = /[\p{L}\p{N}]/u

/** Returns the text up to the next mark. Underscores inside words, as in snake_case, are no marks. */
function plainPart(text: string): string {
  let end = 1
  while (end < text.length) {
    const character = text[end]!
    const isInWord =
      character === '_' && LETTER.test(text[end - 1]!) && LETTER.test(text[end + 1] ?? '')
    if ('*_`'.includes(character) && !isInWord) break
    end++
  }
  return text.slice(0, end)
}
