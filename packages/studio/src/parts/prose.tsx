import { Lexer, type Token, type Tokens } from 'marked'
import { Fragment, memo, useMemo, useState, type ComponentType, type ReactNode } from 'react'
import { safeText } from '@skein/base/safe-text'
import { Copy } from './copy.tsx'

/** Longer texts are shown in parts of this many characters, because laying out a long text would block the browser. */
const PART_CHARS = 20_000

interface ProseProps {
  readonly text: string
}

/**
 * Text of a model, a person or a tool, shown as Markdown. The text becomes React elements, never HTML:
 * a tag in it is shown as text, a link leads only to the web or to a mail address, and no picture is
 * loaded. Finished blocks are not rendered again while the text grows.
 */
export const Prose: ComponentType<ProseProps> = memo(function Prose({
  text,
}: ProseProps): ReactNode {
  const [limit, setLimit] = useState(PART_CHARS)
  const isLong = text.length > limit
  const visible = useMemo(
    () => safeText(isLong ? text.slice(0, limit) : text),
    [text, isLong, limit],
  )
  // If a person opens more than two parts, the whole text is shown as plain text instead of Markdown.
  const blocks = useMemo(
    () => (limit > PART_CHARS * 2 ? undefined : Lexer.lex(visible)),
    [visible, limit],
  )
  return (
    <div className="prose">
      {blocks ? (
        blocks.map((block, index) => <Block key={index} raw={block.raw} token={block} />)
      ) : (
        <p className="plain">{visible}</p>
      )}
      {isLong && (
        <p>
          <button type="button" className="link" onClick={() => setLimit(limit * 4)}>
            Show more: {(text.length - limit).toLocaleString()} of {text.length.toLocaleString()}{' '}
            characters are not shown
          </button>
        </p>
      )}
    </div>
  )
})

/** One block of Markdown. It is rendered again only if its source text has changed. */
const Block = memo(
  function Block({ token }: { readonly raw: string; readonly token: Token }): ReactNode {
    return block(token)
  },
  (before, after) => before.raw === after.raw,
)

function block(token: Token): ReactNode {
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'heading': {
      const { depth, tokens } = token as Tokens.Heading
      // The page has its own headings above.
      const Tag = depth <= 1 ? 'h3' : 'h4'
      return <Tag>{inline(tokens)}</Tag>
    }
    case 'code': {
      const { text } = token as Tokens.Code
      return (
        <div className="code">
          <pre tabIndex={0}>
            <code>{text}</code>
          </pre>
          <Copy text={text} label="Copy the code" />
        </div>
      )
    }
    case 'blockquote':
      return <blockquote>{blocksOf((token as Tokens.Blockquote).tokens)}</blockquote>
    case 'list':
      return list(token as Tokens.List)
    case 'table':
      return table(token as Tokens.Table)
    case 'hr':
      return <hr />
    case 'paragraph':
      return <p>{inline((token as Tokens.Paragraph).tokens)}</p>
    case 'text': {
      const { tokens, text } = token as Tokens.Text
      return <p>{tokens ? inline(tokens) : text}</p>
    }
    default:
      // HTML, and tokens that this version does not know, are shown as their source text.
      return <p>{token.raw.trimEnd()}</p>
  }
}

function blocksOf(tokens: readonly Token[]): ReactNode {
  return tokens.map((token, index) => <Fragment key={index}>{block(token)}</Fragment>)
}

function list({ ordered, start, items }: Tokens.List): ReactNode {
  const rows = items.map((item, index) => (
    <li key={index}>
      {item.task && <span>{item.checked ? '☑ ' : '☐ '}</span>}
      {item.tokens.map((token, place) => (
        <Fragment key={place}>
          {token.type === 'text' ? inline((token as Tokens.Text).tokens ?? [token]) : block(token)}
        </Fragment>
      ))}
    </li>
  ))
  return ordered ? <ol start={start === '' ? 1 : start}>{rows}</ol> : <ul>{rows}</ul>
}

function table({ header, rows }: Tokens.Table): ReactNode {
  return (
    <table>
      <thead>
        <tr>
          {header.map((cell, index) => (
            <th key={index}>{inline(cell.tokens)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={index}>
            {row.map((cell, place) => (
              <td key={place}>{inline(cell.tokens)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function inline(tokens: readonly Token[]): ReactNode {
  return tokens.map((token, index) => <Fragment key={index}>{words(token)}</Fragment>)
}

function words(token: Token): ReactNode {
  switch (token.type) {
    case 'strong':
      return <strong>{inline((token as Tokens.Strong).tokens)}</strong>
    case 'em':
      return <em>{inline((token as Tokens.Em).tokens)}</em>
    case 'del':
      return <del>{inline((token as Tokens.Del).tokens)}</del>
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>
    case 'br':
      return <br />
    case 'link': {
      const { href, tokens } = token as Tokens.Link
      return <Outside href={href}>{inline(tokens)}</Outside>
    }
    case 'image': {
      const { href, text } = token as Tokens.Image
      return <Outside href={href}>[picture: {text || href}]</Outside>
    }
    case 'text': {
      const { tokens, text } = token as Tokens.Text
      return tokens ? inline(tokens) : text
    }
    case 'escape':
      return (token as Tokens.Escape).text
    default:
      return token.raw
  }
}

/** A link to another site. Its tooltip shows the exact address. */
function Outside({
  href,
  children,
}: {
  readonly href: string
  readonly children: ReactNode
}): ReactNode {
  const safe = safeHref(href)
  if (safe === undefined)
    return (
      <span title="Not a link to the web">
        {children} ({href})
      </span>
    )
  return (
    <a className="link" href={safe} title={safe} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  )
}

/** Returns the address if it leads to the web or to a mail program; otherwise undefined. */
export function safeHref(href: string): string | undefined {
  try {
    const url = new URL(href)
    return /^(?:https?|mailto):$/.test(url.protocol) ? url.href : undefined
  } catch {
    return undefined // relative, or no address at all
  }
}
