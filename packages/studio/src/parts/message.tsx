import { memo, useMemo, type ComponentType, type ReactNode } from 'react'
import type { ViewMessage } from '@skein/runtime/view'
import { Brain, FileText, Paperclip } from '../icons/lucide.ts'
import type { MessageFacts } from '../state/facts.ts'
import { useStudio } from '../state/studio.ts'
import { clockText, dateText, line } from './format.ts'
import { Prose, safeHref } from './prose.tsx'

/** Who said something, next to the text. */
export function Who({
  name,
  kind,
  detail,
  at,
}: {
  readonly name: string
  readonly kind: 'person' | 'model' | 'child'
  readonly detail?: string
  readonly at?: string
}): ReactNode {
  return (
    <div className={`who ${kind}`}>
      <span className="cut">{line(name, 40)}</span>
      <small className="num">
        {detail !== undefined && <span>{detail} </span>}
        {at !== undefined && (
          <time dateTime={at} title={dateText(at)}>
            {clockText(at)}
          </time>
        )}
      </small>
    </div>
  )
}

interface MessageViewProps {
  readonly message: ViewMessage
  readonly facts: MessageFacts | undefined
  readonly name: string
  readonly threadId: string
  /** Whether two models talk to each other and the second one (side B) wrote this message. */
  readonly isSideB?: boolean
  readonly isSelected?: boolean
  readonly children?: ReactNode
}

/** A message of a person or an agent. */
export const MessageView: ComponentType<MessageViewProps> = memo(function MessageView({
  message,
  facts,
  name,
  threadId,
  isSideB = false,
  isSelected = false,
  children,
}: MessageViewProps): ReactNode {
  const { from, text, reasoning, attachments, at, subagentId, delivery } = message
  const isPerson = subagentId === undefined && name !== 'parent'
  const kind = from === 'agent' ? 'model' : isPerson ? 'person' : 'child'
  return (
    <article
      className={`msg ${isSideB ? 'side-b' : ''} ${isSelected ? 'selected' : ''}`}
      aria-label={`${line(name, 40)}: message`}
    >
      <Who name={name} kind={kind} at={at} />
      <div
        className={`said ${delivery === 'pending' || delivery === 'refused' ? 'unverified' : ''}`}
      >
        {reasoning !== undefined && <Reasoning text={reasoning} />}
        {text !== '' && <Prose text={text} />}
        {facts?.media.map((block, index) => (
          <Media key={index} block={block} />
        ))}
        {attachments.length > 0 && (
          <ul className="files">
            {attachments.map((path) => (
              <AttachedFile key={path} threadId={threadId} path={path} />
            ))}
          </ul>
        )}
        {delivery === 'pending' && (
          <p className="mark">not verified yet: a gate checks it before it is delivered</p>
        )}
        {delivery === 'refused' && <p className="mark bad">not delivered: unverified</p>}
        {children}
      </div>
    </article>
  )
})

/** What a model thought, folded. */
export function Reasoning({
  text,
  isOpen = false,
}: {
  readonly text: string
  readonly isOpen?: boolean
}): ReactNode {
  return (
    <details className="reasoning" open={isOpen}>
      <summary>
        <Brain size={13} aria-hidden /> Reasoning
      </summary>
      <Prose text={text} />
    </details>
  )
}

/** A file of the thread: a picture is displayed, any other file is a link. */
export function AttachedFile({
  threadId,
  path,
}: {
  readonly threadId: string
  readonly path: string
}): ReactNode {
  const { url } = useStudio()
  const href = `${url}/threads/${encodeURIComponent(threadId)}/files/${path.replace(/^\//, '').split('/').map(encodeURIComponent).join('/')}`
  const isPicture = /\.(?:png|jpe?g|gif|webp|avif)$/i.test(path)
  return (
    <li>
      {isPicture ? (
        <a href={href} target="_blank" rel="noopener noreferrer">
          <img className="picture" src={href} alt={line(path, 120)} loading="lazy" />
        </a>
      ) : (
        <a className="link" href={href} download>
          <Paperclip size={13} aria-hidden /> {line(path, 120)}
        </a>
      )}
    </li>
  )
}

const PICTURE_TYPES = /^image\/(?:png|jpeg|gif|webp|avif)$/

/** A block of a message that is not text. Images from other sites are linked, not loaded. */
function Media({ block }: { readonly block: Readonly<Record<string, unknown>> }): ReactNode {
  const { source, mimeType } = block as {
    source?: { type?: string; data?: string; url?: string }
    mimeType?: string
  }
  const src = useMemo(() => {
    if (typeof source?.data !== 'string' || !PICTURE_TYPES.test(mimeType ?? '')) return undefined
    return `data:${mimeType};base64,${source.data}`
  }, [source, mimeType])
  if (src !== undefined) return <img className="picture" src={src} alt="Picture in the message" />
  const href = typeof source?.url === 'string' ? safeHref(source.url) : undefined
  const kind = line(String(block['type']), 40)
  return (
    <p className="soft">
      <FileText size={13} aria-hidden />{' '}
      {href === undefined ? (
        kind
      ) : (
        <a className="link" href={href} target="_blank" rel="noopener noreferrer nofollow">
          {kind}: {line(href, 120)}
        </a>
      )}
    </p>
  )
}
