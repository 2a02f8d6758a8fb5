import {
  lazy,
  Suspense,
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type ReactNode,
} from 'react'
import type { ThreadInfo } from '@skein/runtime'
import { Dialog } from '../parts/dialog.tsx'
import { age, line, plural } from '../parts/format.ts'
import { stateOf } from '../parts/status.tsx'
import { useAddress, type Address } from '../state/address.ts'
import { PALETTE } from '../state/input.ts'
import { activeKeys, closeOverlay, openOverlay } from '../state/keys.ts'
import { useStore } from '../state/store.ts'
import { useMay, useStudio } from '../state/studio.ts'
import { useResource } from '../state/resource.ts'
import { chooseTheme } from '../state/theme.ts'

const ImportThread = lazy(async () => ({
  default: (await import('../screens/thread/import-thread.tsx')).ImportThread,
}))

interface Choice {
  readonly group: 'Screens' | 'Commands' | 'Agents' | 'Threads'
  readonly title: string
  /** A text that distinguishes this choice from others with the same title. */
  readonly detail?: string
  readonly keys?: string
  /** Further text by which it is found. */
  readonly words?: string
  readonly run: () => void
}

const SCREENS: readonly (readonly [string, Address, string])[] = [
  ['Threads', { screen: 'threads' }, 'g t'],
  ['Inbox', { screen: 'inbox' }, 'g i'],
  ['Agents', { screen: 'agents' }, 'g a'],
  ['API', { screen: 'api' }, 'g p'],
]

/** How many choices of a group are shown together; typing finds the others. */
const MAX_OF_GROUP = 8
/** These keys are about a call on the screen. The palette does not offer them, because it covers the call. */
const DECISIONS: ReadonlySet<string> = new Set(['a', 'e', 'd', 'Enter'])

/** A dialog to go to a thread, an agent or a screen, or to run an action, by typing a part of its name. */
export function Palette({ onHelp }: { readonly onHelp: () => void }): ReactNode {
  const [text, setText] = useState('')
  const [active, setActive] = useState(0)
  const [isImporting, setImporting] = useState(false)
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const choices = useChoices(text, { onHelp, onImport: () => setImporting(true) })
  const current = choices[Math.min(active, choices.length - 1)]
  useLayoutEffect(() => input.current?.focus(), [])
  useEffect(() => {
    const option = current && document.getElementById(optionId(id, choices.indexOf(current)))
    option?.scrollIntoView({ block: 'nearest' })
  }, [current, choices, id])
  const choose = (choice: Choice | undefined): void => {
    if (!choice) return
    // Runs only after the closing dialog has returned the focus, because the action may move the focus.
    // Until then the keys of the page stay off.
    openOverlay(CHOICE)
    if (choice.title !== IMPORT) onClose()
    setTimeout(() => {
      choice.run()
      closeOverlay(CHOICE)
    })
  }
  if (isImporting)
    return (
      <Suspense fallback={null}>
        <ImportThread onClose={onClose} />
      </Suspense>
    )
  return (
    <Dialog className="palette" title="Search and commands" overlay={PALETTE} onClose={onClose}>
      <input
        ref={input}
        className="field"
        role="combobox"
        aria-label="Search and commands"
        aria-expanded="true"
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={current && optionId(id, choices.indexOf(current))}
        placeholder="A thread, an agent, a screen or a command"
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setActive(0)
        }}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
          const end = { Home: 0, End: choices.length - 1 }[event.key]
          if (step !== undefined && choices.length > 0) {
            event.preventDefault()
            setActive((active + step + choices.length) % choices.length)
          } else if (end !== undefined && text === '') {
            event.preventDefault()
            setActive(Math.max(0, end))
          } else if (event.key === 'Enter') {
            event.preventDefault()
            choose(current)
          }
        }}
      />
      <Results id={id} choices={choices} current={current} onActive={setActive} onChoose={choose} />
      <p className="palette-foot soft small" role="status">
        {choices.length === 0
          ? `No results for “${line(text, 60)}”.`
          : plural(choices.length, 'result')}
      </p>
    </Dialog>
  )
}

/** The name under which an action of the palette is being started. */
const CHOICE = 'choice'

function onClose(): void {
  closeOverlay(PALETTE)
}

/** The list of the palette. The input above it keeps the focus; `aria-activedescendant` names the active option. */
function Results({
  id,
  choices,
  current,
  onActive,
  onChoose,
}: {
  readonly id: string
  readonly choices: readonly Choice[]
  readonly current: Choice | undefined
  readonly onActive: (index: number) => void
  readonly onChoose: (choice: Choice) => void
}): ReactNode {
  const groups = [...new Set(choices.map(({ group }) => group))]
  return (
    <div id={id} role="listbox" aria-label="Results" className="palette-list">
      {groups.map((group) => (
        <div key={group} role="group" aria-label={group}>
          <div className="palette-group" aria-hidden>
            {group}
          </div>
          {choices.map((choice, index) =>
            choice.group !== group ? null : (
              <div
                key={index}
                id={optionId(id, index)}
                role="option"
                aria-selected={choice === current}
                className="palette-row"
                onPointerMove={() => onActive(index)}
                onClick={() => onChoose(choice)}
              >
                <span className="cut">{choice.title}</span>
                {choice.detail !== undefined && (
                  <span className="soft small cut">{choice.detail}</span>
                )}
                {choice.keys !== undefined && (
                  <span aria-hidden>
                    {choice.keys.split(' ').map((key) => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </span>
                )}
              </div>
            ),
          )}
        </div>
      ))}
    </div>
  )
}

function optionId(id: string, index: number): string {
  return `${id}-${index}`
}

const IMPORT = 'Import a thread…'

/** Returns all choices that match the text, group by group. */
function useChoices(
  text: string,
  { onHelp, onImport }: { readonly onHelp: () => void; readonly onImport: () => void },
): readonly Choice[] {
  const { client, lists, me, signOut } = useStudio()
  const [, go] = useAddress()
  const agents = useResource('agents', () => client.agents.list()).value
  const allThreads = useStore(lists.threads).items
  const matches = useFound(text)
  const mayImport = useMay('admin')
  const isSignedIn = useStore(me)?.isSignedIn === true
  // Read once: the keys of the screen below do not change while the palette is open.
  const keys = useMemo(() => activeKeys.get(), [])
  const searchWords = text.trim().toLowerCase().split(/\s+/)
  const fits = ({ title, detail = '', words = '' }: Choice): boolean => {
    const all = `${title} ${detail} ${words}`.toLowerCase()
    return searchWords.every((word) => all.includes(word))
  }
  const screens = SCREENS.map(([title, address, bound]): Choice => ({
    group: 'Screens',
    title,
    keys: bound,
    run: () => go(address),
  }))
  const bound = keys
    .filter((one) => !DECISIONS.has(one.keys) && !/^g .$/.test(one.keys) && one.keys !== '?')
    .map(({ keys: binding, does, run }): Choice => ({
      group: 'Commands',
      title: does,
      keys: binding,
      run,
    }))
  const command = (title: string, run: () => void): Choice => ({ group: 'Commands', title, run })
  const commands = [
    ...bound,
    command('New thread', () => go({ screen: 'threads', isNew: true })),
    ...(mayImport ? [command(IMPORT, onImport)] : []),
    command('Theme: light', () => chooseTheme('light')),
    command('Theme: dark', () => chooseTheme('dark')),
    command('Theme: system', () => chooseTheme('system')),
    command('Show the keys', onHelp),
    ...(isSignedIn ? [command('Sign out', () => void signOut())] : []),
  ]
  const people = (agents ?? []).map(({ name, title, description = '' }): Choice => ({
    group: 'Agents',
    title: line(title ?? name, 60),
    detail: line(name, 60),
    words: description,
    run: () => go({ screen: 'agent', agent: name }),
  }))
  const threads = new Map([...allThreads, ...matches].map((thread) => [thread.id, thread]))
  const conversations = [...threads.values()].map(
    ({ id, title, firstWords, agent, lifecycle, tree, updatedAt }): Choice => ({
      group: 'Threads',
      title: line(title ?? firstWords ?? 'No message yet', 80),
      detail: `${line(agent, 30)} · ${stateOf({ lifecycle, waiting: tree.waiting })[1]} · ${age(Date.now() - Date.parse(updatedAt))}`,
      words: id,
      run: () => go({ screen: 'thread', threadId: id }),
    }),
  )
  return [screens, commands, people, conversations].flatMap((group) =>
    group.filter(fits).slice(0, MAX_OF_GROUP),
  )
}

/** Returns threads that the server finds, because the page's own list has only the latest ones. */
function useFound(text: string): readonly ThreadInfo[] {
  const { client } = useStudio()
  const [settled, setSettled] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text.trim()), 200)
    return () => clearTimeout(timer)
  }, [text])
  const search = settled.length >= 2 ? settled : undefined
  const answer = useResource(search && `search ${search}`, () =>
    client.threads.list({ search, parentId: null, limit: MAX_OF_GROUP }),
  )
  return answer.value ?? []
}
