import { createStore, readSetting, writeSetting, type PageStore } from './store.ts'

/** `system` follows the operating system. */
export type Theme = 'system' | 'light' | 'dark'

/** The chosen theme. The script `theme.js` applies it before the page is first painted. */
export const theme: PageStore<Theme> = createStore<Theme>(chosen(readSetting('theme')))

function chosen(text: string | undefined): Theme {
  return text === 'light' || text === 'dark' ? text : 'system'
}

/** Chooses a theme, and keeps the choice. */
export function chooseTheme(next: Theme): void {
  writeSetting('theme', next === 'system' ? undefined : next)
  if (next === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = next
  theme.set(next)
}
