import { Lexer, type Token, type Tokens } from 'marked'
import { type ComponentType, Fragment, memo, type ReactNode } from 'react'

/** Longer texts are shown as they are: reading their Markdown again with every word would block the page. */
const MAX_CHARS = 20_000

/**
 * Text of a model, shown as Markdown. A model repeats what it has read, so the text is not trusted: it becomes React
 * elements and never HTML, a tag is shown as text, links lead only to the web or to a mail address, and no picture is
 * loaded, because its address could carry away what the conversation contains.
 */
export const Markdown: ComponentType<{ text: string }> = memo(function Markdown({
  text,
}: {
  text: string
}): ReactNode {
  return <div className="prose">{renderText(text)}</div>
})

/** Thirty quotes or lists in one another are no answer, and reading thousands of them would take seconds. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){30}/m

function renderText(text: string): ReactNode {
  if (text.length > MAX_CHARS || TOO_DEEP.test(text)) return <p className="typed">{text}</p>
  // With `breaks` a new line of the model is one on the page.
  return blocks(Lexer.lex(text, { gfm: true, breaks: true }))
}

function blocks(tokens: readonly Token[]): ReactNode {
  return tokens.map((token, index) => <Fragment key={index}>{block(token)}</Fragment>)
}

function block(token: Token): ReactNode {
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'heading': {
      const { depth, tokens } = token as Tokens.Heading
      // The page has its own heading above.
      const Tag = depth === 1 ? 'h2' : depth === 2 ? 'h3' : 'h4'
      return <Tag>{inline(tokens)}</Tag>
    }
    case 'code':
      return (
        <pre tabIndex={0}>
          <code>{(token as Tokens.Code).text}</code>
        </pre>
      )
    case 'blockquote':
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens)}</blockquote>
    case 'list':
      return list(token as Tokens.List)
    case 'table':
      return table(token as Tokens.Table)
    case 'hr':
      return <hr />
    case 'paragraph':
      return <p>{inline((token as Tokens.Paragraph).tokens)}</p>
    case 'text':
      return <p>{words(token)}</p>
    default:
      return <p className="typed">{token.raw.trimEnd()}</p> // HTML among them
  }
}

function list({ ordered, start, items }: Tokens.List): ReactNode {
  const rows = items.map(({ tokens }, index) => (
    <li key={index}>
      {tokens.map((token, at) => (
        <Fragment key={at}>{isInline(token) ? words(token) : block(token)}</Fragment>
      ))}
    </li>
  ))
  return ordered ? <ol start={start === '' ? 1 : start}>{rows}</ol> : <ul>{rows}</ul>
}

/** Text of a short item stands in it without a paragraph. */
function isInline({ type }: Token): boolean {
  return type === 'text' || type === 'checkbox'
}

function table({ header, rows }: Tokens.Table): ReactNode {
  return (
    <div className="table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {header.map(({ tokens }, index) => (
              <th key={index}>{inline(tokens)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map(({ tokens }, at) => (
                <td key={at}>{inline(tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
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
    case 'checkbox':
      return (token as Tokens.Checkbox).checked ? '☑ ' : '☐ '
    case 'link': {
      const { href, tokens } = token as Tokens.Link
      return <Link href={href}>{inline(tokens)}</Link>
    }
    case 'image': {
      const { href, text } = token as Tokens.Image
      return <Link href={href}>{`[picture: ${text || href}]`}</Link>
    }
    case 'text': {
      const { tokens, text } = token as Tokens.Text
      return tokens ? inline(tokens) : text
    }
    case 'escape':
      return (token as Tokens.Escape).text
    default:
      return token.raw // HTML among them
  }
}

/** A link whose tooltip is the exact address. What leads elsewhere than to the web or to a mail is only text. */
function Link({ href, children }: { href: string; children: ReactNode }): ReactNode {
  const url = URL.parse(href)
  if (!url || !/^(?:https?|mailto):$/.test(url.protocol)) return <span>{children}</span>
  return (
    <a href={url.href} title={url.href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  )
}
