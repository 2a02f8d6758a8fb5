import { useVirtualizer } from '@tanstack/react-virtual'
import { useRef, type ReactNode } from 'react'
import { clockText, line } from '../../parts/format.ts'
import type { ThreadAddress } from '../../state/address.ts'
import type { LoggedEvent, ShownThread } from '../../state/tree.ts'

/** The log of the thread, event by event. */
export function EventsView({
  thread,
  address,
  onSelect,
}: {
  readonly thread: ShownThread
  readonly address: ThreadAddress
  readonly onSelect: (id: string) => void
}): ReactNode {
  const scroll = useRef<HTMLDivElement>(null)
  const count =
    address.at === undefined
      ? thread.events.length
      : thread.events.filter(({ seq }) => seq <= address.at!).length
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroll.current,
    estimateSize: () => 28,
    overscan: 6,
  })
  return (
    <div className="events" ref={scroll} tabIndex={0} role="region" aria-label="Events">
      <ol className="event-rows" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, start }) => {
          const logged = thread.events[index]!
          const id = `event ${logged.seq}`
          return (
            <li key={logged.seq} style={{ transform: `translateY(${start}px)` }}>
              <button
                type="button"
                className={`event ${address.select === id ? 'selected' : ''}`}
                aria-pressed={address.select === id}
                onClick={() => onSelect(id)}
              >
                <span className="faint num">{logged.seq}</span>
                <span className="soft num">{timeOf(logged)}</span>
                <b className={toneOf(logged)}>{line(logged.event.type, 60)}</b>
                <span className="soft mono cut">{summaryOf(logged)}</span>
              </button>
            </li>
          )
        })}
      </ol>
    </div>
  )
}

function timeOf({ event }: LoggedEvent): string {
  const ms = String(new Date(event.at).getMilliseconds())
  return `${clockText(event.at)}.${ms.padStart(3, '0')}`
}

/** The five meanings, for events. */
function toneOf({ event: { type } }: LoggedEvent): string {
  if (/^(?:error_raised|step_failed)$/.test(type)) return 'bad'
  if (/^(?:interrupt|gate|evidence|variables)/.test(type)) return 'waits'
  if (/^(?:tool|call|effect)/.test(type)) return 'tool-ink'
  if (/^(?:model|step|turn|inference)/.test(type)) return 'model-ink'
  if (type.startsWith('message')) return 'person-ink'
  return ''
}

function summaryOf({ event }: LoggedEvent): string {
  const { type: _, at: __, ...rest } = event as unknown as Record<string, unknown> // an event is a JSON object
  const words = Object.entries(rest)
    .filter(([name]) => !/Id$|^epoch$|^version$/.test(name))
    .map(
      ([name, value]) =>
        `${name} ${typeof value === 'string' ? value.slice(0, 200) : short(value)}`,
    )
  return line(words.join(' · '), 240)
}

/** The beginning of a value as JSON, without converting the whole value. */
function short(value: unknown): string {
  if (value === null || typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return `[${value.length}]`
  const names = Object.keys(value)
  return `{ ${names.slice(0, 6).join(', ')}${names.length > 6 ? ', …' : ''} }`
}
