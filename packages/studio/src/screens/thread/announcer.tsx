import { useEffect, useRef, useState, type ReactNode } from 'react'
import type { ViewItem, ViewMessage } from '@skein/runtime/view'
import { line, plural } from '../../parts/format.ts'
import type { ShownThread } from '../../state/tree.ts'

/**
 * Announces to screen readers what happens: whole sentences of the streamed text, decisions that a
 * person has to make, and how the session ended. Single words are not announced.
 */
export function Announcer({ thread }: { readonly thread: ShownThread }): ReactNode {
  const [spoken, setSpoken] = useState('')
  const { draft } = thread.facts
  const { waiting, items, status, draftDelivery } = thread.view
  // `waiting` starts at 0, so that calls that already wait when the thread is opened are announced too.
  const said = useRef({ draft: 0, last: lastId(items), waiting: 0, status })
  useEffect(() => {
    const before = said.current
    const parts: string[] = []
    const sentences = draft ? wholeSentences(draft.text) : ''
    if (sentences.length > before.draft)
      parts.push(
        (before.draft === 0 && draftDelivery ? UNVERIFIED[draftDelivery] : '') +
          sentences.slice(before.draft),
      )
    const last = items.at(-1)
    const isNew = lastId(items) !== before.last
    if (isNew && last?.type === 'message' && last.from === 'agent')
      parts.push(`${UNVERIFIED[last.delivery ?? 'delivered']}${last.text.slice(before.draft)}`)
    if (isNew && last?.type === 'call') parts.push(`Calls ${last.toolName}.`)
    const people = waiting.filter((wait) => wait.for === 'person').length
    if (waiting.length > before.waiting && people > 0)
      parts.push(`${plural(people, 'decision')} to make.`)
    if (status !== before.status && /^(?:failed|stopping|stopped)$/.test(status))
      parts.push(`The thread is ${status}.`.replace('is failed', 'has failed'))
    said.current = {
      draft: draft ? Math.max(sentences.length, before.draft) : 0,
      last: lastId(items),
      waiting: waiting.length,
      status,
    }
    const text = parts.join(' ').trim()
    if (text !== '') setSpoken(line(text, 600))
  }, [draft, items, waiting, status])
  return (
    <div className="hidden" role="status" aria-live="polite" data-testid="spoken">
      {spoken}
    </div>
  )
}

/** What is announced before an answer that people cannot rely on. */
const UNVERIFIED: Readonly<Record<NonNullable<ViewMessage['delivery']>, string>> = {
  pending: 'Not verified yet: ',
  refused: 'Not delivered: ',
  delivered: '',
}

/** Returns the text up to the end of its last complete sentence. */
function wholeSentences(text: string): string {
  for (let end = text.length; end > 0; end--)
    if ('.!?'.includes(text[end - 1]!) && (end === text.length || /\s/.test(text[end]!)))
      return text.slice(0, end)
  return ''
}

/**
 * Returns the id of the last item. A new id means a new item; a new count may only mean that earlier
 * items were loaded.
 */
function lastId(items: readonly ViewItem[]): string | undefined {
  const last = items.at(-1)
  return last && ('id' in last ? last.id : last.at)
}
