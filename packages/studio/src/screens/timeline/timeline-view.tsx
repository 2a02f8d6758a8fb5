import { useMemo, useState, type ReactNode } from 'react'
import { Maximize, ZoomIn } from '../../icons/lucide.ts'
import { Empty } from '../../parts/placeholder.tsx'
import { useNow } from '../../parts/time.tsx'
import { line, plural } from '../../parts/format.ts'
import { useKeys } from '../../state/keys.ts'
import type { TreeState } from '../../state/tree.ts'
import { rowsOf, timesOf, type TimelineRow } from './bars.ts'
import { clockOf } from './clock.ts'
import { Axis } from './axis.tsx'
import { Rows } from './rows.tsx'

const FILTERS = [
  ['all', 'All'],
  ['failed', 'Failed'],
  ['slow', 'Slow'],
  ['waiting', 'Waited'],
] as const
type Filter = (typeof FILTERS)[number][0]

/** A part of the clock, in its units. */
export type Range = readonly [from: number, to: number]

/** Shows what ran when: models, tools, children and waits on one time scale. Idle time is shortened to a small mark. */
export function TimelineView({
  tree,
  until,
  selected,
  onSelect,
}: {
  readonly tree: TreeState
  /** Set if an earlier state is shown: the time up to which events are shown. */
  readonly until: number | undefined
  readonly selected: string | undefined
  readonly onSelect: (id: string) => void
}): ReactNode {
  const tick = useNow()
  const isLive = until === undefined && isOpen(tree)
  // Only while the thread works does the timeline end at the current time; otherwise it ends with the last event.
  const now = until ?? (isLive ? tick : latest(tree))
  const all = useMemo(() => rowsOf(tree, now), [tree, now])
  const clock = useMemo(() => clockOf(all), [all])
  const [filter, setFilter] = useState<Filter>('all')
  const [agent, setAgent] = useState('')
  const agents = useMemo(() => [...new Set(all.map((row) => row.agent))], [all])
  const rows = useMemo(() => filtered(all, filter, agent), [all, filter, agent])
  const [range, setRange] = useState<Range>()
  const visible: Range = range ?? [0, clock.width]
  const current = rows.findIndex((row) => row.select === selected)
  const zoom = (row: TimelineRow | undefined): void => {
    if (!row) return
    const [from, to] = [clock.at(row.from), clock.at(row.to)]
    const margin = Math.max((to - from) * 0.15, clock.width / 5000)
    setRange([Math.max(0, from - margin), Math.min(clock.width, to + margin)])
  }
  useKeys([
    { keys: 'z', does: 'Zoom to the selected bar', run: () => zoom(rows[current]) },
    { keys: '0', does: 'Show the whole period', run: () => setRange(undefined) },
  ])
  const of = rows.length === all.length ? '' : `${rows.length} of `
  const count = `${of}${plural(all.length, 'row')}${tree.isWhole ? '' : ', reading more,'}`
  if (all.length === 0)
    return (
      <Empty title="Nothing has run yet">
        <p>Requests to models, calls and children appear here with the time they took.</p>
      </Empty>
    )
  return (
    <div className="timeline">
      <div className="timeline-tools">
        <div className="btns" role="group" aria-label="Filter">
          {FILTERS.map(([name, label]) => (
            <button
              key={name}
              type="button"
              className="btn tiny"
              aria-pressed={filter === name}
              onClick={() => setFilter(name)}
            >
              {label}
            </button>
          ))}
          {agents.length > 1 && (
            <select
              className="select tiny"
              aria-label="Agent"
              value={agent}
              onChange={(event) => setAgent(event.target.value)}
            >
              <option value="">All agents</option>
              {agents.map((name) => (
                <option key={name} value={name}>
                  {line(name, 40)}
                </option>
              ))}
            </select>
          )}
        </div>
        <Legend />
        <button
          type="button"
          className="btn tiny"
          disabled={current < 0}
          title="Zoom to the selected bar; dragging over the clock zooms too"
          onClick={() => zoom(rows[current])}
        >
          <ZoomIn size={13} aria-hidden /> Zoom <kbd>z</kbd>
        </button>
        <button
          type="button"
          className="btn tiny"
          disabled={range === undefined}
          onClick={() => setRange(undefined)}
        >
          <Maximize size={13} aria-hidden /> Whole <kbd>0</kbd>
        </button>
      </div>
      <Axis clock={clock} range={visible} onRange={setRange} count={count} />
      <Rows {...{ rows, clock, range: visible, current, onSelect, zoom }} />
    </div>
  )
}

function Legend(): ReactNode {
  return (
    <ul className="legend small soft" aria-label="What the bars mean">
      <li>
        <i className="bar model" aria-hidden /> model
      </li>
      <li>
        <i className="bar tool" aria-hidden /> tool
      </li>
      <li>
        <i className="bar child" aria-hidden /> child
      </li>
      <li>
        <i className="bar waited" aria-hidden /> waits
      </li>
      <li>
        <i className="bar queued" aria-hidden /> in a queue
      </li>
    </ul>
  )
}

function filtered(
  rows: readonly TimelineRow[],
  filter: Filter,
  agent: string,
): readonly TimelineRow[] {
  const rowsOfAgent = agent === '' ? rows : rows.filter((row) => row.agent === agent)
  switch (filter) {
    case 'all':
      return rowsOfAgent
    case 'failed':
      return rowsOfAgent.filter((row) => row.isFailed)
    case 'waiting':
      return rowsOfAgent.filter((row) => row.stretches.some(({ kind }) => kind === 'wait'))
    case 'slow': {
      // The slowest tenth of what is shown.
      const times = rowsOfAgent.map((row) => timesOf(row).run).toSorted((a, b) => a - b)
      const least = times[Math.floor(times.length * 0.9)] ?? 0
      return rowsOfAgent.filter((row) => timesOf(row).run >= Math.max(least, 1))
    }
  }
}

function isOpen({ threads }: TreeState): boolean {
  for (const { view } of threads.values())
    if (/^(?:running|queued|waiting)$/.test(view.status)) return true
  return false
}

function latest({ threads }: TreeState): number {
  let time = 0
  for (const { view } of threads.values()) time = Math.max(time, Date.parse(view.updatedAt))
  return time
}
