import { useEffect, useMemo, useRef, type ReactNode } from 'react'
import { alignSteps, type ViewItem } from '@skein/runtime/view'
import { ErrorBox } from '../../parts/error-box.tsx'
import { Skeleton } from '../../parts/placeholder.tsx'
import { countText, duration, line, money, plural } from '../../parts/format.ts'
import { indentedJson } from '../../parts/json.tsx'
import { To } from '../../parts/link.tsx'
import type { ThreadAddress } from '../../state/address.ts'
import { modelTime } from '../../state/facts.ts'
import { useTree } from '../../state/studio.ts'
import type { TreeState } from '../../state/tree.ts'
import { sumOf } from './thread-head.tsx'

type Pair = ReturnType<typeof alignSteps<ViewItem>>[number]

/** How many words of a text are compared at most. */
const MAX_WORDS = 1500

/** Two threads or branches side by side, step by step; the first difference is marked. */
export function DiffView({
  tree,
  otherId,
  address,
}: {
  readonly tree: TreeState
  readonly otherId: string
  readonly address: ThreadAddress
}): ReactNode {
  const other = useTree(otherId)
  const [mine, theirs] = [tree.threads.get(tree.rootId), other.threads.get(otherId)]
  const pairs = useMemo(
    () => alignSteps<ViewItem>(mine?.view.items ?? [], theirs?.view.items ?? []),
    [mine?.view.items, theirs?.view.items],
  )
  const first = pairs.findIndex(({ isSame }) => !isSame)
  const mark = useRef<HTMLDivElement>(null)
  const isReady = mine !== undefined && theirs !== undefined && other.isLoaded
  useEffect(() => {
    if (isReady) mark.current?.scrollIntoView({ block: 'center' })
  }, [isReady, first])
  if (other.error !== undefined && !theirs) return <ErrorBox error={other.error} />
  if (!isReady) return <Skeleton lines={6} />
  const { with: _, ...alone } = address
  return (
    <div className="diff" tabIndex={0} role="region" aria-label="Difference of two threads">
      <table className="diff-sums">
        <thead>
          <tr>
            <th scope="col">
              <To className="link" address={alone}>
                Close the comparison
              </To>
            </th>
            <th scope="col">This thread</th>
            <th scope="col">
              <To className="link" address={{ screen: 'thread', threadId: otherId }}>
                The other
              </To>
            </th>
            <th scope="col">Difference</th>
          </tr>
        </thead>
        <tbody>
          {numbers(tree, other).map(([name, a, b, text]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td className="num">{text(a)}</td>
              <td className="num">{text(b)}</td>
              <td className="num">{deltaText(a, b, text)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {first < 0 ? (
        <p className="pad">Both threads say and do the same.</p>
      ) : (
        <p className="soft small pad">
          {plural(first, 'step')} before the first difference,{' '}
          {plural(pairs.filter(({ isSame }) => !isSame).length, 'difference')} in total
        </p>
      )}
      {runsOf(pairs).map(({ from, items }) =>
        items[0]!.isSame ? (
          <p key={from} className="diff-same small soft">
            {plural(items.length, 'equal step')}: {line(stepLine(items.at(-1)!.before!), 90)}
          </p>
        ) : (
          items.map((pair, index) => (
            <div
              key={from + index}
              ref={from + index === first ? mark : undefined}
              className="diff-pair"
            >
              {from + index === first && <p className="diff-first">First difference</p>}
              <Side item={pair.before} against={pair.after} sign="−" />
              <Side item={pair.after} against={pair.before} sign="+" />
            </div>
          ))
        ),
      )}
    </div>
  )
}

/** One step of one side, with the words or lines marked that the other side does not have. */
function Side({
  item,
  against,
  sign,
}: {
  readonly item: ViewItem | undefined
  readonly against: ViewItem | undefined
  readonly sign: '+' | '−'
}): ReactNode {
  const parts = useMemo(() => {
    if (!item) return []
    const own = wordsOf(item)
    if (!against) return own.map((text) => ({ text, isSame: true }))
    return alignSteps(own, wordsOf(against)).flatMap(({ before: text, isSame }) =>
      text === undefined ? [] : [{ text, isSame }],
    )
  }, [item, against])
  if (!item) return <div className="diff-side none soft small">not there</div>
  return (
    <div className={`diff-side ${sign === '+' ? 'added' : 'removed'}`}>
      <p className="small soft">
        <span aria-hidden>{sign} </span>
        {item.type === 'message'
          ? item.from
          : item.type === 'call'
            ? `call of ${line(item.toolName, 60)}`
            : 'note'}
      </p>
      <div className={item.type === 'call' ? 'mono diff-text' : 'diff-text'}>
        {parts.map(({ text, isSame }, index) => (isSame ? text : <mark key={index}>{text}</mark>))}
      </div>
    </div>
  )
}

/** Returns the words of a message, each with the spaces after it, or the lines of a call. */
function wordsOf(item: ViewItem): readonly string[] {
  switch (item.type) {
    case 'message':
      return (safe(item.text).match(/\S+\s*/g) ?? []).slice(0, MAX_WORDS)
    case 'call': {
      const { arguments: args, state, result } = item
      return safe(indentedJson({ arguments: args, state, result }), 100_000)
        .split(/(?<=\n)/)
        .slice(0, MAX_WORDS)
    }
    case 'note':
      return [safe(item.text)]
  }
}

function safe(text: string, maxChars = 20_000): string {
  return text
    .split('\n')
    .map((one) => line(one, maxChars))
    .join('\n')
}

function stepLine(item: ViewItem): string {
  return item.type === 'call' ? item.toolName : item.text
}

type Numbers = readonly [
  name: string,
  mine: number | null,
  theirs: number | null,
  text: (value: number | null) => string,
]

function numbers(tree: TreeState, other: TreeState): readonly Numbers[] {
  const [a, b] = [sumOf(tree), sumOf(other)]
  const count = (value: number | null): string => countText(value ?? 0)
  const time = (value: number | null): string => duration(value ?? 0)
  return [
    ['Tokens', a.input + a.output, b.input + b.output, count],
    ['Cost', a.costUsd, b.costUsd, money],
    ['Model time', modelTimeOf(tree), modelTimeOf(other), time],
    ['Events', seqOf(tree), seqOf(other), count],
  ]
}

/** The time in the head of the thread: without its children. */
function modelTimeOf({ threads, rootId }: TreeState): number {
  const root = threads.get(rootId)
  return root ? modelTime(root.facts) : 0
}

function seqOf({ threads, rootId }: TreeState): number {
  return threads.get(rootId)?.view.seq ?? 0
}

function deltaText(a: number | null, b: number | null, text: Numbers[3]): string {
  if (a === null || b === null) return 'unknown'
  if (a === b) return 'none'
  return `${b > a ? '+' : '−'}${text(Math.abs(b - a))}`
}

/** Groups consecutive pairs that are all equal, or all different. */
function runsOf(pairs: readonly Pair[]): readonly { from: number; items: Pair[] }[] {
  const runs: { from: number; items: Pair[] }[] = []
  pairs.forEach((pair, index) => {
    const last = runs.at(-1)
    if (last && last.items[0]!.isSame === pair.isSame) last.items.push(pair)
    else runs.push({ from: index, items: [pair] })
  })
  return runs
}
