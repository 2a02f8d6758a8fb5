import type { ReactNode } from 'react'
import { Monitor, Moon, Sun } from '../icons/lucide.ts'
import { useStore } from '../state/store.ts'
import { chooseTheme, theme, type Theme } from '../state/theme.ts'

const NEXT_THEME: Readonly<Record<Theme, Theme>> = {
  system: 'light',
  light: 'dark',
  dark: 'system',
}

const THEME_NAMES: Readonly<Record<Theme, string>> = {
  system: 'Theme: system',
  light: 'Theme: light',
  dark: 'Theme: dark',
}

export function ThemeButton(): ReactNode {
  const now = useStore(theme)
  const Icon = { system: Monitor, light: Sun, dark: Moon }[now]
  return (
    <button
      type="button"
      className="btn quiet icon"
      aria-label={THEME_NAMES[now]}
      title={THEME_NAMES[now]}
      onClick={() => chooseTheme(NEXT_THEME[now])}
    >
      <Icon size={16} aria-hidden />
    </button>
  )
}
