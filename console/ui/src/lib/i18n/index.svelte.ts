// Two languages, each written for its readers. A view's dictionary has the shape of its
// English one; the compiler finds what is missing.

import { keep, kept } from '../settings.svelte';

export type Locale = 'en' | 'zh-CN';

export interface Words<T> {
  en: T;
  'zh-CN': T;
}

/** Dictionaries are given through this, so that both have the same shape. */
export function words<T>(en: T, zh: NoInfer<T>): Words<T> {
  return { en, 'zh-CN': zh };
}

function first(): Locale {
  const chosen = kept('locale');
  if (chosen === 'en' || chosen === 'zh-CN') return chosen;
  return navigator.languages.find((tag) => /^(zh|en)\b/i.test(tag))?.toLowerCase().startsWith('zh') ? 'zh-CN' : 'en';
}

class I18n {
  locale = $state<Locale>(first());

  constructor() {
    document.documentElement.lang = this.locale;
  }

  choose(locale: Locale) {
    this.locale = locale;
    keep('locale', locale);
    document.documentElement.lang = locale;
  }

  of<T>(all: Words<T>): T {
    return all[this.locale];
  }
}

export const i18n = new I18n();
