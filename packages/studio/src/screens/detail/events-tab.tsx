import type { ReactNode } from 'react'
import { line } from '../../parts/format.ts'
import { Json } from '../../parts/json.tsx'
import { useWholeEvent } from '../../parts/tool-call.tsx'
import type { LoggedEvent } from '../../state/tree.ts'
import { type Selected } from './detail-pane.tsx'

/** The step that a selected thing belongs to. */
export function stepOf({ thread, call, message, event }: Selected): string | undefined {
  if (call) return thread.facts.calls.get(call.id)?.stepId
  if (message) return thread.facts.messages.get(message.id)?.stepId
  const { stepId } = (event?.event ?? {}) as { stepId?: string }
  return stepId
}

/** An event as it is stored. If the page has only the beginning of a long tool result, the whole event is loaded. */
export function EventJson({
  threadId,
  logged: { seq, event, isCut },
}: {
  readonly threadId: string
  readonly logged: LoggedEvent
}): ReactNode {
  const whole = useWholeEvent(threadId, isCut ? seq : undefined)
  if (whole.isLoading) return <p className="soft small">Loading the event …</p>
  return <Json value={whole.value ?? event} label={`Event ${seq}`} />
}

export function EventsTab({ selected }: { readonly selected: Selected }): ReactNode {
  const { thread, call, message, event } = selected
  const stepId = stepOf(selected)
  const related = thread.events.filter((logged) => {
    if (event) return logged.seq === event.seq
    const text = logged.event as {
      toolCallId?: string
      stepId?: string
      message?: { id?: string }
      interrupt?: { toolCallId?: string }
    }
    if (call)
      return (
        text.toolCallId === call.id ||
        text.interrupt?.toolCallId === call.id ||
        (stepId !== undefined && text.stepId === stepId)
      )
    return text.message?.id === message?.id || (stepId !== undefined && text.stepId === stepId)
  })
  return (
    <section>
      {related.map((logged) => (
        <details key={logged.seq} className="event-detail" open={related.length === 1}>
          <summary>
            <span className="faint num">{logged.seq}</span> {line(logged.event.type, 60)}
          </summary>
          <EventJson threadId={thread.threadId} logged={logged} />
        </details>
      ))}
      {related.length === 0 && <p className="soft">No event mentions this.</p>}
    </section>
  )
}
