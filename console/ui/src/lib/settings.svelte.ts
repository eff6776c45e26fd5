// What a reader has chosen in this browser.

export type Theme = 'system' | 'light' | 'dark';

function kept(name: string) {
  try {
    return localStorage.getItem(`rollcall.${name}`);
  } catch {
    return null;
  }
}

export function keep(name: string, value: string | null) {
  try {
    if (value === null) localStorage.removeItem(`rollcall.${name}`);
    else localStorage.setItem(`rollcall.${name}`, value);
  } catch {
    // A browser that keeps nothing still shows everything.
  }
}

export { kept };

class Settings {
  theme = $state<Theme>('system');

  constructor() {
    const theme = kept('theme');
    if (theme === 'light' || theme === 'dark') this.theme = theme;
    this.show();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => (this.painted += 1));
  }

  /** Grows whenever colours may have changed, for what is painted on a canvas. */
  painted = $state(0);

  choose(theme: Theme) {
    this.theme = theme;
    keep('theme', theme === 'system' ? null : theme);
    this.show();
  }

  private show() {
    if (this.theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.theme;
    this.painted += 1;
  }
}

export const settings = new Settings();
