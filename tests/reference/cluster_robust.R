# Numbers of test_habits.py. R 4.2.2, clubSandwich 0.5.8: Rscript tests/reference/cluster_robust.R
library(clubSandwich)

i <- 0:59
gold <- (i * 7) %% 5
x <- ((i * 13) %% 17) / 4
unequal <- floor(sqrt(i))                       # groups of 1, 3, 5, ... rows
y <- 0.7 * gold + 0.1 * x + ((i * i * 31) %% 23) / 10 - 1 + ((unequal * unequal) %% 7) / 5
z <- unequal %% 2                               # the same throughout a group

look <- function(value, group, name) {
  fit <- lm(y ~ factor(gold) + value)
  robust <- coef_test(fit, vcov = "CR2", cluster = group, test = "Satterthwaite", coefs = "value")
  limits <- conf_int(fit, vcov = "CR2", cluster = group, test = "Satterthwaite", coefs = "value", level = 0.95)
  cat(sprintf("%s: slope %.10f, df %.8f, p %.10f, low %.10f, high %.10f\n", name, robust$beta, robust$df, robust$p_Satt,
              limits$CI_L, limits$CI_U))
}

look(x, unequal, "x by group")
look(x, i, "x by row")
look(z, unequal, "z by group")
