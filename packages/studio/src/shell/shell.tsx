import { Keyboard, Search } from 'lucide-react'
import { lazy, Suspense, useEffect, useState, type ReactNode } from 'react'
import { useRouter } from 'wouter'
import { Boundary, Dialog, Empty, Skeleton } from '../parts/basics.tsx'
import { Split } from '../parts/split.tsx'
import { To } from '../parts/link.tsx'
import { plural } from '../parts/format.ts'
import { useAddress, type Address } from '../state/address.ts'
import { activeKeys, onPageKey, useKeys } from '../state/keys.ts'
import { useStore } from '../state/store.ts'
import { useStudio } from '../state/studio.ts'
import { StartPane } from '../screens/threads/start-pane.tsx'
import { ThreadList } from '../screens/threads/thread-list.tsx'
import iconUrl from '../styles/icon.svg'
import { useBadge } from '../state/title.ts'
import { SignIn, Account } from './sign-in.tsx'
import { ThemeButton } from './theme-button.tsx'

// The list of threads is in the first bundle; the other screens are loaded when the page is idle.
const readThread = () => import('../screens/thread/thread-screen.tsx')
const readInbox = () => import('../screens/inbox/inbox-screen.tsx')
const readAgents = () => import('../screens/agents/agents-screen.tsx')
const ThreadScreen = lazy(async () => ({ default: (await readThread()).ThreadScreen }))
const InboxScreen = lazy(async () => ({ default: (await readInbox()).InboxScreen }))
const AgentsScreen = lazy(async () => ({ default: (await readAgents()).AgentsScreen }))
const ApiScreen = lazy(async () => ({
  default: (await import('../screens/api/api-screen.tsx')).ApiScreen,
}))
const readPalette = () => import('./palette.tsx')
const Palette = lazy(async () => ({ default: (await readPalette()).Palette }))
const AgentScreen = lazy(async () => ({ default: (await readAgents()).AgentScreen }))

async function readAhead(): Promise<void> {
  // If there is no connection, this fails, and each screen is loaded when it is opened.
  const screens = [readPalette(), readThread(), readInbox(), readAgents()]
  await Promise.all(screens).catch(() => undefined)
}

const PALETTE_KEYS = /Mac|iP/.test(navigator.platform) ? '⌘K' : 'Ctrl K'

/** Opens and closes the palette with Ctrl-K or ⌘K, also while the person types, but not over another dialog. */
function usePaletteKey(): readonly [boolean, (isOpen: boolean) => void] {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isKey = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)
      if (!isKey || event.shiftKey || event.altKey) return
      event.preventDefault()
      const other = document.querySelector('dialog[open]:not(.palette)')
      if (!other) setOpen((before) => !before)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  return [isOpen, setOpen]
}

/** Scrolls the navigation to the link of the current page: in a narrow window not all links are visible. */
function useNavigation(place: string): void {
  useEffect(() => {
    const here = document.querySelector('.topbar nav [aria-current]')
    here?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [place])
}

/** The frame around every screen. */
export function Shell(): ReactNode {
  const { lists, me } = useStudio()
  const who = useStore(me)
  const [address, go] = useAddress()
  const [isHelpOpen, setHelpOpen] = useState(false)
  const [isPaletteOpen, setPaletteOpen] = usePaletteKey()
  const waiting = useStore(lists.inbox).items.length
  useBadge(waiting)
  useNavigation(`${address.screen} ${who === undefined}`)
  useEffect(() => {
    document.addEventListener('keydown', onPageKey)
    const timer = setTimeout(() => void readAhead(), 500)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('keydown', onPageKey)
    }
  }, [])
  useKeys([
    { keys: 'g t', does: 'Go to the threads', run: () => go({ screen: 'threads' }) },
    { keys: 'g i', does: 'Go to the inbox', run: () => go({ screen: 'inbox' }) },
    { keys: 'g a', does: 'Go to the agents', run: () => go({ screen: 'agents' }) },
    { keys: 'g p', does: 'Go to the API', run: () => go({ screen: 'api' }) },
    { keys: '?', does: 'Show the keys that work here', run: () => setHelpOpen(true) },
  ])
  if (who === null) return <SignIn />
  return (
    <div className="shell">
      <a className="btn skip" href="#main">
        Skip to the content
      </a>
      <header className="topbar">
        <To className="brand" address={{ screen: 'threads' }} aria-label="Skein Studio">
          <img src={iconUrl} alt="" />
          <span>Skein Studio</span>
        </To>
        <nav aria-label="Pages">
          <NavLink address={{ screen: 'threads' }} isCurrent={/^threads?$/.test(address.screen)}>
            Threads
          </NavLink>
          <NavLink address={{ screen: 'inbox' }} isCurrent={address.screen === 'inbox'}>
            Inbox
            {waiting > 0 && (
              <span className="count" title={`${plural(waiting, 'decision')} to make`}>
                {waiting}
              </span>
            )}
          </NavLink>
          <NavLink address={{ screen: 'agents' }} isCurrent={/^agents?$/.test(address.screen)}>
            Agents
          </NavLink>
          <NavLink address={{ screen: 'api' }} isCurrent={address.screen === 'api'}>
            API
          </NavLink>
          <DocsLink />
        </nav>
        <div className="end">
          <ConnectionPill />
          <button
            type="button"
            className="btn quiet icon"
            aria-label="Go to or do"
            aria-keyshortcuts="Control+K Meta+K"
            title={`Go to or do (${PALETTE_KEYS})`}
            onClick={() => setPaletteOpen(true)}
          >
            <Search size={16} aria-hidden />
          </button>
          <button
            type="button"
            className="btn quiet icon"
            aria-label="Keys"
            title="Keys (?)"
            onClick={() => setHelpOpen(true)}
          >
            <Keyboard size={16} aria-hidden />
          </button>
          <ThemeButton />
          <Account />
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <Boundary key={address.screen}>
          <Suspense fallback={<Skeleton lines={6} />}>
            <Screen address={address} />
          </Suspense>
        </Boundary>
      </main>
      {isPaletteOpen && (
        <Suspense fallback={null}>
          <Palette onClose={() => setPaletteOpen(false)} onHelp={() => setHelpOpen(true)} />
        </Suspense>
      )}
      {isHelpOpen && <Help onClose={() => setHelpOpen(false)} />}
      <Notices />
    </div>
  )
}

function NavLink({
  address,
  isCurrent,
  children,
}: {
  readonly address: Address
  readonly isCurrent: boolean
  readonly children: ReactNode
}): ReactNode {
  return (
    <To address={address} aria-current={isCurrent ? 'page' : undefined}>
      {children}
    </To>
  )
}

/** An ordinary link, because the documentation is a separate site below this page's address. */
function DocsLink(): ReactNode {
  return <a href={`${useRouter().base}/docs/`}>Docs</a>
}

function Screen({ address }: { readonly address: Address }): ReactNode {
  switch (address.screen) {
    case 'threads':
    case 'thread':
      return (
        <Split
          name="threads"
          className={address.screen === 'threads' && !address.isNew ? 'at-list' : 'at-thread'}
          label="the list"
          side="start"
          initial={300}
          fixed={<ThreadList address={address} />}
        >
          {address.screen === 'thread' ? (
            <Suspense fallback={<Skeleton lines={6} />}>
              <ThreadScreen key={address.threadId} address={address} />
            </Suspense>
          ) : (
            <StartPane />
          )}
        </Split>
      )
    case 'inbox':
      return <InboxScreen item={address.item} />
    case 'agents':
      return <AgentsScreen />
    case 'agent':
      return <AgentScreen key={address.agent} agent={address.agent} />
    case 'api':
      return <ApiScreen operation={address.operation} />
    case 'unknown':
      return (
        <Empty title="Nothing has this address">
          <p>
            <To className="link" address={{ screen: 'threads' }}>
              All threads
            </To>
          </p>
        </Empty>
      )
  }
}

function ConnectionPill(): ReactNode {
  const { status } = useStudio()
  const { type } = useStore(status)
  return (
    <span role="status">
      {type === 'lost' && (
        <span
          className="pill"
          title="The server does not answer. The page stays as it was and goes on by itself when the server is back."
        >
          <i className="dot stop" aria-hidden />
          disconnected, trying again
        </span>
      )}
    </span>
  )
}

function Help({ onClose }: { readonly onClose: () => void }): ReactNode {
  const bindings = useStore(activeKeys)
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="keys">
        <div style={{ display: 'contents' }}>
          <dt>
            <kbd>{PALETTE_KEYS}</kbd>
          </dt>
          <dd>Go to a thread, an agent or a screen, or do something</dd>
        </div>
        {bindings.map(({ keys, does }) => (
          <div key={keys + does} style={{ display: 'contents' }}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <p className="soft small">Keys do nothing while you type, except {PALETTE_KEYS}.</p>
    </Dialog>
  )
}

function Notices(): ReactNode {
  const { notices } = useStudio()
  return (
    <div className="notices" role="status" aria-live="polite">
      {useStore(notices).map(({ id, text }) => (
        <div key={id} className="notice">
          {text}
        </div>
      ))}
    </div>
  )
}
