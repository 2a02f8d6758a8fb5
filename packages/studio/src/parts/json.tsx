import { memo, useMemo, useState, type ComponentType, type ReactNode } from 'react'
import { escapeJson } from '@skein/base/safe-text'
import { bytes } from './format.ts'
import { Copy } from './copy.tsx'

/** Of larger values only this many characters are shown, with a button for the rest that says how large it is. */
const PART_CHARS = 20_000

interface JsonProps {
  readonly value: unknown
  readonly label?: string
}

/**
 * A value as JSON. Invisible, reordering and control characters are written as JSON escapes, so that
 * they cannot make the value look different from what it is.
 */
export const Json: ComponentType<JsonProps> = memo(function Json({
  value,
  label = 'Value',
}: JsonProps): ReactNode {
  const [isWhole, setWhole] = useState(false)
  const text = useMemo(() => indentedJson(value), [value])
  const isLong = text.length > PART_CHARS && !isWhole
  const visible = useMemo(
    () => escapeJson(isLong ? text.slice(0, PART_CHARS) : text),
    [text, isLong],
  )
  return (
    <div className="json-box">
      <pre className="json" tabIndex={0} aria-label={label}>
        {visible.length <= PART_CHARS * 2 ? coloured(visible) : visible}
        {isLong && '…'}
      </pre>
      <Copy text={text} label={`Copy: ${label.toLowerCase()}`} />
      {isLong && (
        <button type="button" className="link small" onClick={() => setWhole(true)}>
          Show all: {bytes(text.length)}, of which {bytes(PART_CHARS)} are shown
        </button>
      )}
    </div>
  )
})

/** The JSON of any value, indented. A text that is itself JSON is parsed first. */
export function indentedJson(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = typeof value === 'string' ? reparsed(value) : value
  return JSON.stringify(text, null, 2) ?? String(value)
}

function reparsed(text: string): unknown {
  if (!/^\s*[[{]/.test(text) || text.length > 5_000_000) return text
  try {
    return JSON.parse(text)
  } catch {
    return text // a text that begins like JSON
  }
}

/** Matches a number, `true`, `false` or `null` at `lastIndex`. */
const WORD = /-?\d[\d.eE+-]*|true|false|null/y

/** Colours keys, strings and numbers, in one pass over the text. */
function coloured(json: string): ReactNode {
  const parts: ReactNode[] = []
  let plainFrom = 0
  const add = (from: number, to: number, kind: string): void => {
    if (from > plainFrom) parts.push(json.slice(plainFrom, from))
    plainFrom = to
    parts.push(
      <span key={from} className={kind}>
        {json.slice(from, to)}
      </span>,
    )
  }
  for (let at = 0; at < json.length;) {
    if (json[at] === '"') {
      const end = endOfText(json, at)
      add(at, end, json[end] === ':' ? 'k' : 's')
      at = end
    } else if (/[-\dtfn]/.test(json[at]!)) {
      WORD.lastIndex = at
      const length = WORD.exec(json)?.[0].length ?? 0
      if (length > 0) add(at, at + length, 'n')
      at += Math.max(length, 1)
    } else at++
  }
  parts.push(json.slice(plainFrom))
  return parts
}

/** Returns the index after the string that begins at `start`. */
function endOfText(json: string, start: number): number {
  let at = start + 1
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return Math.min(at + 1, json.length)
}
