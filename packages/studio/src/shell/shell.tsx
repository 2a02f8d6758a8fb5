import { lazy, Suspense, useEffect, useState, type ReactNode } from 'react'
import { useRouter } from 'wouter'
import { Keyboard, Search } from '../icons/lucide.ts'
import { Boundary } from '../parts/error-box.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Empty, Skeleton } from '../parts/placeholder.tsx'
import { Split } from '../parts/split.tsx'
import { To } from '../parts/link.tsx'
import { plural } from '../parts/format.ts'
import { useAddress, type Address } from '../state/address.ts'
import { PALETTE } from '../state/input.ts'
import { activeKeys, openPalette, overlays, useKeys, useLoading } from '../state/keys.ts'
import { useStore } from '../state/store.ts'
import { useStudio } from '../state/studio.ts'
import { StartPane } from '../screens/threads/start-pane.tsx'
import { ThreadList } from '../screens/threads/thread-list.tsx'
import iconUrl from '../styles/icon.svg'
import { useBadge } from '../state/title.ts'
import { Palette } from './palette.tsx'
import { SignIn, Account } from './sign-in.tsx'
import { ThemeButton } from './theme-button.tsx'

// The list of threads is in the first bundle; the other screens are loaded when the page is idle.
const readThread = () => import('../screens/thread/thread-screen.tsx')
const readInbox = () => import('../screens/inbox/inbox-screen.tsx')
const readAgents = () => import('../screens/agents/agents-screen.tsx')
const readAgent = () => import('../screens/agents/agent-screen.tsx')
const ThreadScreen = lazy(async () => ({ default: (await readThread()).ThreadScreen }))
const InboxScreen = lazy(async () => ({ default: (await readInbox()).InboxScreen }))
const AgentsScreen = lazy(async () => ({ default: (await readAgents()).AgentsScreen }))
const ApiScreen = lazy(async () => ({
  default: (await import('../screens/api/api-screen.tsx')).ApiScreen,
}))
const AgentScreen = lazy(async () => ({ default: (await readAgent()).AgentScreen }))

async function readAhead(): Promise<void> {
  // If there is no connection, this fails, and each screen is loaded when it is opened.
  const screens = [readThread(), readInbox(), readAgents(), readAgent()]
  await Promise.all(screens).catch(() => undefined)
}

const PALETTE_KEYS = /Mac|iP/.test(navigator.platform) ? '⌘K' : 'Ctrl K'

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
  const isPaletteOpen = useStore(overlays).includes(PALETTE)
  useLoading('who is signed in', who === undefined)
  const waiting = useStore(lists.inbox).items.length
  useBadge(waiting)
  useNavigation(`${address.screen} ${who === undefined}`)
  useEffect(() => {
    const timer = setTimeout(() => void readAhead(), 500)
    return () => clearTimeout(timer)
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
            aria-label="Search and commands"
            aria-keyshortcuts="Control+K Meta+K"
            title={`Search and commands (${PALETTE_KEYS})`}
            onClick={openPalette}
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
          <Suspense fallback={<ScreenLoading />}>
            <Screen address={address} />
          </Suspense>
        </Boundary>
      </main>
      {isPaletteOpen && <Palette onHelp={() => setHelpOpen(true)} />}
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
            <Suspense fallback={<ScreenLoading />}>
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
        <Empty title="There is no page at this address" isPage>
          <p>
            <To className="link" address={{ screen: 'threads' }}>
              All threads
            </To>
          </p>
        </Empty>
      )
  }
}

/** What is shown while the code of a screen is loading. Until it is there, keys are not keys of the page. */
function ScreenLoading(): ReactNode {
  useLoading('a screen')
  return <Skeleton lines={6} />
}

function ConnectionPill(): ReactNode {
  const { status } = useStudio()
  const { type } = useStore(status)
  return (
    <span role="status">
      {type === 'lost' && (
        <span
          className="pill"
          title="The server is not responding. This page keeps its state and continues when the server is back."
        >
          <i className="dot stop" aria-hidden />
          disconnected, reconnecting
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
          <dd>Search threads, agents, screens and commands</dd>
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
