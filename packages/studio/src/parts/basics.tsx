import { CheckIcon as Check, CopyIcon, X } from '../icons/lucide.ts'
import {
  Component,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  useSyncExternalStore,
  type ReactNode,
} from 'react'
import { useOverlay } from '../state/keys.ts'
import { OverlayContext } from './decision-button.tsx'
import { age, dateText, money } from './format.ts'

/** The clock of the page. Components that show an age ("3 min") are rendered again when it ticks. */
const clock = {
  now: Date.now(),
  listeners: new Set<() => void>(),
  timer: undefined as ReturnType<typeof setInterval> | undefined,
}

function subscribe(listener: () => void): () => void {
  clock.listeners.add(listener)
  clock.timer ??= setInterval(() => {
    clock.now = Date.now()
    for (const one of clock.listeners) one()
  }, 5000)
  return () => {
    clock.listeners.delete(listener)
    if (clock.listeners.size > 0) return
    clearInterval(clock.timer)
    clock.timer = undefined
  }
}

/** Returns the current time; it changes every five seconds. */
export function useNow(): number {
  useSyncExternalStore(subscribe, () => clock.now)
  return Math.max(clock.now, Date.now() - 5000)
}

/** Shows how long ago a time was, with the exact time on hover. */
export function Time({
  at,
  className = 'soft num',
  isAgo = false,
}: {
  readonly at: string
  readonly className?: string
  /** Whether to add `ago`, for use in a sentence: `3 min ago`. */
  readonly isAgo?: boolean
}): ReactNode {
  const now = useNow()
  const text = age(now - Date.parse(at))
  return (
    <time className={className} dateTime={at} title={dateText(at)}>
      {text}
      {isAgo && text !== 'now' && ' ago'}
    </time>
  )
}

/** A cost in US dollars, or the word unknown. */
export function Cost({ usd }: { readonly usd: number | null | undefined }): ReactNode {
  const isKnown = usd !== null && usd !== undefined
  return (
    <span
      className="num"
      title={isKnown ? `${usd} US dollars` : 'No price is known for a model that was used.'}
    >
      {money(usd)}
    </span>
  )
}

/** A button that copies a text. */
export function Copy({
  text,
  label = 'Copy',
}: {
  readonly text: string
  readonly label?: string
}): ReactNode {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), 1500)
    return () => clearTimeout(timer)
  }, [isCopied])
  return (
    <button
      type="button"
      className="btn quiet icon tiny"
      aria-label={isCopied ? 'Copied' : label}
      title={isCopied ? 'Copied' : label}
      onClick={() => void copyText(text).then(setCopied)}
    >
      {isCopied ? <Check size={14} aria-hidden /> : <CopyIcon size={14} aria-hidden />}
    </button>
  )
}

/** Copies a text. Pages that came over plain HTTP from another machine have no clipboard, so this can fail. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}

/** A command to run in a terminal. */
export function CommandLine({ text }: { readonly text: string }): ReactNode {
  return (
    <div className="cmd">
      <code tabIndex={0}>{text}</code>
      <Copy text={text} label="Copy the command" />
    </div>
  )
}

/** The text in place of an empty list: what would be here, and how to get it. */
export function Empty({
  title,
  isPage = false,
  children,
}: {
  readonly title: string
  /** Whether there is nothing else on the page, so that the title is that of the page. */
  readonly isPage?: boolean
  readonly children?: ReactNode
}): ReactNode {
  const Heading = isPage ? 'h1' : 'h2'
  return (
    <div className="empty">
      <Heading>{title}</Heading>
      {children}
    </div>
  )
}

/** Grey lines in place of content that is being loaded; they appear after 200 ms. */
export function Skeleton({ lines = 4 }: { readonly lines?: number }): ReactNode {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <i key={index} style={{ width: `${[72, 48, 86, 60, 40][index % 5]}%` }} />
      ))}
    </div>
  )
}

/** An error with its code, its hint, and a way to try again. */
export function ErrorBox({
  error,
  retry,
}: {
  readonly error: unknown
  readonly retry?: () => void
}): ReactNode {
  const { code, message, hint } = described(error)
  return (
    <div className="error" role="alert">
      <strong>{message}</strong> {code !== undefined && <code className="soft">{code}</code>}
      {hint !== undefined && <p>{hint}</p>}
      <div className="btns row-end">
        {retry && (
          <button type="button" className="btn tiny" onClick={retry}>
            Try again
          </button>
        )}
        <Copy text={[code, message, hint].filter(Boolean).join('\n')} label="Copy the error" />
      </div>
    </div>
  )
}

/** Catches errors of the components inside it, so that one broken screen does not break the whole page. */
export class Boundary extends Component<
  { readonly children: ReactNode },
  { readonly error?: unknown }
> {
  override state: { readonly error?: unknown } = {}

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error }
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children
    return (
      <div className="page">
        <ErrorBox error={this.state.error} retry={() => location.reload()} />
      </div>
    )
  }
}

function described(error: unknown): { code?: string; message: string; hint?: string } {
  if (!(error instanceof Error)) return { message: String(error) }
  const { code, hint } = error as { code?: unknown; hint?: unknown }
  return {
    message: error.message,
    code: typeof code === 'string' ? code : undefined,
    hint: typeof hint === 'string' ? hint : undefined,
  }
}

/** A dialog over the page. Escape and a press outside it close it; the browser keeps the focus inside. */
export function Dialog({
  title,
  onClose,
  children,
  className,
  overlay,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ReactNode
  /** A class of its own, e.g. for the palette; such a dialog has no heading and no padding. */
  readonly className?: string
  /** The name under which it was announced as open before it was rendered; other dialogs announce themselves. */
  readonly overlay?: string
}): ReactNode {
  const ref = useRef<HTMLDialogElement>(null)
  const own = useId()
  const name = overlay ?? own
  // A press that begins inside, such as one that selects text, closes nothing where it ends.
  const isPressOutside = useRef(false)
  useOverlay(own, overlay === undefined)
  useLayoutEffect(() => {
    const dialog = ref.current
    const before = document.activeElement
    dialog?.showModal()
    return () => {
      dialog?.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={ref}
      className={className}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onPointerDown={(event) => {
        isPressOutside.current = event.target === ref.current
      }}
      onClick={(event) => {
        if (event.target === ref.current && isPressOutside.current) onClose()
      }}
    >
      {className === undefined && (
        <div className="dialog-head">
          <h2>{title}</h2>
          <button type="button" className="btn quiet icon" aria-label="Close" onClick={onClose}>
            <X size={16} aria-hidden />
          </button>
        </div>
      )}
      <OverlayContext value={name}>
        {className === undefined ? <div className="dialog-body">{children}</div> : children}
      </OverlayContext>
    </dialog>
  )
}
